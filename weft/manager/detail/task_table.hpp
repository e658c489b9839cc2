// task_table: the tasks by id, and their deadlines.
//
//   id   63 ... 26        25 ...... s    s ... 0
//        generation       slot          shard            of 2^s shards; never 0
//
//      shard                          slots, in chunks of 64, 128, 256, ..., and their deadlines
//      +---------------------+       +----------------------------------------+
//      | lock, free list     | ----> | generation | task | mail, turn | home  |
//      | wheel of deadlines  | -+    +----------------------------------------+
//      +---------------------+  +--> | links, deadline | slot |
//                                    +-------------------------+
//
// Design: an id is a slot and a generation, which counts how often the slot was given out. To find
// a task is one index and one comparison; to distinguish two ids takes no clock; and the id of a
// task that is done never names another, because a slot whose generations are used up is not given
// out again. All that a resume of a waiting task needs is in the slot, and a deadline is beside it:
// either needs the lock and the cache line that find the task, and nothing of the task's memory.
//
// Callers on different threads insert into different shards. Time is counted in ticks, by the
// caller.
//
// Invariants:
// T1  a slot has a task exactly while its id may be found
// T2  a slot's node is in its shard's wheel only while the slot has a task
// T3  `next` of a shard is not later than what its wheel has next, as of the last owner of its lock
// T4  a slot's pending value (`mail`) is a waiter in suspend() that no caller has taken, or a value
//     that is stored for the task; the caller that takes either, under the lock, ends that wait,
//     and posts it once
//
// Model: test/model/task_table_test.cpp
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/base/result.hpp"
#include "weft/manager/detail/live_count.hpp"
#include "weft/manager/detail/managed_task.hpp"
#include "weft/wait/detail/home_lock.hpp"
#include "weft/wheel/wheel.hpp"

namespace weft::detail {

// Where a value goes: to the waiter, which the caller has taken; or it was stored, or is refused.
struct resume_offer {
    manager_errc refused{};  // zero: not refused
    bool kept = false;
    waiter* to = nullptr;
    ready_turn turn{};         // of `to`
    executor* home = nullptr;  // the same

    // Only with a `to` that has its value. On its own thread nothing of the task is touched: what
    // its turn needs has left the caches, and is prefetched for many tasks at once when they are
    // next.
    void wake() const noexcept {
        if (home->running_in_this_thread())
            home->defer(turn.handle, turn.of);
        else
            home->post(*to);
    }
};

class task_table {
public:
    static constexpr unsigned index_bits = 26;  // 67 108 864 slots
    static constexpr std::size_t status_count =
        static_cast<std::size_t>(managed_status::timed_out) + 1;

    struct census {
        std::size_t living = 0;
        std::size_t deadlines = 0;
        std::array<std::uint64_t, status_count> ended{};  // by cause
    };

    explicit task_table(std::size_t shard_count);  // rounded up to a power of two, at most 1024
    task_table(const task_table&) = delete;
    task_table& operator=(const task_table&) = delete;
    ~task_table();  // it is empty

    // Gives the task an id, under which it is found from then on. A deadline, or tick_never.
    // Refused if all slots are taken, or if `all` was closed since it admitted the task: so a walk
    // that began after the closing has not missed the task. Throws bad_alloc.
    [[nodiscard]] result<std::uint64_t> insert(managed_task& t, tick deadline,
                                               const live_count& all);
    // The task is done: its id and deadline are released, and a value that is stored for it moves
    // into the task. Returns whether it had a deadline.
    bool remove(managed_task& t, managed_status how) noexcept;

    managed_ref find(std::uint64_t id) noexcept;

    // Replaces the deadline before; tick_never: none. False: there is no such task. `sooner`: only
    // if it is earlier than the present one.
    bool set_deadline(std::uint64_t id, tick deadline, bool sooner = false) noexcept;
    tick deadline_of(std::uint64_t id) noexcept;  // tick_never: none

    // Takes up to `room` tasks whose deadline is not after `now`, the earliest first, all of one
    // tick; their deadlines are gone. 0: there are none.
    std::size_t take_due(tick now, managed_ref* into, std::size_t room) noexcept;
    // Not after the earliest deadline; it may, once, be a deadline that was taken back.
    tick next() const noexcept;

    // A value of this type for that task. Without `keep` nothing is stored: make one, and offer
    // again.
    resume_offer offer(std::uint64_t id, type_id type, kept_value* keep) noexcept;
    // The task waits for such a value. Or a value is stored, of any type: it is returned, and the
    // task does not wait.
    [[nodiscard]] kept_value* suspend(managed_task& t, waiter& w, type_id type) noexcept;
    // Ends the wait of w. False: w does not wait, because it has been resumed.
    [[nodiscard]] bool cancel(managed_task& t, waiter& w) noexcept;
    // The task is stopped: no resume reaches it any more, unless its wait is one that no stop ends,
    // or it suspends once more.
    void close(std::uint64_t id) noexcept;

    // The ids of all tasks that are live at one point in time. Throws bad_alloc.
    std::vector<std::uint64_t> ids() const;
    // f(task) for each, some at a time, without a lock: for each task that is in the table for the
    // whole call, and perhaps for others.
    template <class F>
    void for_each(F f) noexcept {
        for (std::size_t k = 0; k <= shard_mask_; ++k) {
            managed_ref some[batch];
            for (std::uint32_t at = 0; std::size_t n = take_some(shards_[k], at, some);)
                for (std::size_t i = 0; i < n; ++i) {
                    const managed_ref t = std::move(some[i]);
                    f(*t);
                }
        }
    }
    census count() const noexcept;

    void check() const noexcept;

private:
    static constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
    static constexpr std::uint64_t last_generation = (std::uint64_t{1} << (64 - index_bits)) - 1;
    static constexpr unsigned first_bits = 6;  // the first chunk has 64 slots, the next twice that
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    // Tags of `mail`.
    static constexpr std::uintptr_t kept_tag = 1;
    static constexpr std::uintptr_t closed_tag = 2;
    static constexpr std::uintptr_t shielded_tag = 4;  // a waiter that no stop ends
    static constexpr std::uintptr_t tags = kept_tag | closed_tag | shielded_tag;

    struct alignas(cache_line_bytes) slot {
        managed_task* task = nullptr;
        std::uint64_t generation = 1;  // of the present task, or of the next one
        std::uintptr_t mail = 0;       // T4: a waiter, or a kept_value and a tag; 0: neither
        type_id wanted = nullptr;      // the type that the waiter waits for,
        ready_turn turn{};             // its turn,
        executor* home = nullptr;      // and the executor of that turn
        std::uint32_t index = 0;       // in its shard
        std::uint32_t next_free = none;

        waiter* suspended() const noexcept {
            return (mail & kept_tag) == 0 ? reinterpret_cast<waiter*>(mail & ~tags) : nullptr;
        }
        bool is_closed() const noexcept { return (mail & closed_tag) != 0; }
        bool is_shielded() const noexcept { return (mail & shielded_tag) != 0; }
        kept_value* kept() const noexcept {
            return (mail & kept_tag) != 0 ? reinterpret_cast<kept_value*>(mail & ~tags) : nullptr;
        }
    };
    static_assert(sizeof(slot) == cache_line_bytes);
    struct slot_deadline : wheel_node {
        slot* of = nullptr;
    };
    struct chunk {
        std::unique_ptr<slot[]> slots;
        std::unique_ptr<slot_deadline[]> deadlines;
    };
    struct alignas(2 * cache_line_bytes) shard {
        mutable home_lock lock;
        // T3. Orders: relaxed, it is written under the lock; a reader without the lock checks again
        // under it, and one that sees it late was not ordered after its writer.
        atomic<tick> next{tick_never};
        std::uint32_t first_free = none;
        std::uint32_t slot_count = 0;
        unsigned chunk_count = 0;
        census counts;
        std::array<chunk, index_bits - first_bits + 1> chunks;
        wheel timers;
    };

    static constexpr std::size_t batch = 64;
    // The next ones from slot `at` on; advances `at`. 0: there are none.
    static std::size_t take_some(const shard& s, std::uint32_t& at, managed_ref* into) noexcept;

    static slot& slot_at(const shard& s, std::uint32_t i) noexcept;
    static slot_deadline& deadline_at(const shard& s, std::uint32_t i) noexcept;
    shard& shard_here() noexcept;
    // Under the lock; null: there is no such task.
    slot* slot_of(const shard& s, std::uint64_t id) const noexcept;
    shard& shard_of(std::uint64_t id) const noexcept {
        return shards_[static_cast<std::size_t>(id) & shard_mask_];
    }
    std::uint64_t id_of(const shard& s, const slot& place) const noexcept;
    // Under the lock.
    static void arm(shard& s, slot& place, tick deadline) noexcept;
    static bool disarm(shard& s, slot& place) noexcept;
    std::unique_lock<home_lock> lock_with_room(shard& s);

    const std::size_t shard_mask_;
    const unsigned shard_bits_;
    const std::unique_ptr<shard[]> shards_;
};

}  // namespace weft::detail
