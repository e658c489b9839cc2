// descriptor: an open file of the system, and what weft knows of it: who waits for it, and whether
// it is ready.
//
// Its one idea: the entries stand in a table by the number of the file and never go away, and each
// opening has a generation of its own. So an event that comes late, a waiter that comes back and a
// number that the system has given out again are told apart by one comparison, and nothing is ever
// looked up in memory that somebody has freed.
//
//      table: number ---> [chunk of 256] ---> entry      word (64 bits)
//                                             readers     +------------+--------+-------+-------+
//                                             writers     | generation | events | users | flags |
//                                             watchers    +------------+--------+-------+-------+
//
// Who makes a system call is a user from before it until after it, and the last user of an entry
// that was closed gives the number back; so no call is ever made on a number that somebody else
// has by now.
//
// Readiness is what the last event or the last call told: a flag that an event sets and that a call
// clears when it has taken all there was, if no event came in between (`events`). So ready data
// costs one call, and a call that would only find nothing is not made.
//
// Who waits is told by the driver of his own loop, which watches the entry from his first wait on;
// an entry remembers two of them, for one that reads and one that writes elsewhere.
//
// Invariants:
// D1  a waiter enlists under the lock after it has seen its flag clear; an event sets the flag and
//     then takes the lock: one of them sees the other
// D2  users are counted only in the generation that they have asked for, and there are less of them
//     than can be counted: a driver is given no call of an entry that is crowded
// D3  the number is closed once: by the user who takes `owed` away when there is no other
//
// Model: none, chaos_test and io_driver_test have the protocol of an entry's word.
// TODO(test): the word of an entry and its two lists, under the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weft/base/atomic.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

class io_driver;

namespace detail {

struct io_entry {
    // The flags of the word.
    static constexpr std::uint64_t readable = 1;
    static constexpr std::uint64_t writable = 2;
    static constexpr std::uint64_t ended = 4;  // reading will find the end: stays readable
    static constexpr std::uint64_t closed = 8;
    static constexpr std::uint64_t stream = 16;  // less than was asked for: that was all
    static constexpr std::uint64_t owed = 32;    // the last user closes the number
    static constexpr std::uint64_t user = 1u << 8;
    static constexpr std::uint64_t users = 0xfffu << 8;
    static constexpr std::uint64_t event = 1u << 20;
    static constexpr std::uint64_t events = 0xfffu << 20;
    static constexpr unsigned generation_shift = 32;

    atomic<std::uint64_t> word{closed};
    int number = -1;              // where it stands in the table
    spin_lock lock;               // guards what follows
    wait_list waiting[2];         // for reading, for writing
    io_driver* watchers[2] = {};  // the latest first

    static std::uint32_t generation_of(std::uint64_t w) noexcept {
        return static_cast<std::uint32_t>(w >> generation_shift);
    }

    // A glance, by who is no user: in this generation, open, and not ready for `flag`.
    bool is_unready(std::uint32_t generation, std::uint64_t flag) const noexcept {
        // Relaxed: who goes by it has to look again, under the lock. D1
        const std::uint64_t now = word.load(std::memory_order_relaxed);
        return generation_of(now) == generation && (now & (flag | closed)) == 0;
    }

    // A glance: so many are users that what lasts is not to be one more. Calls that do not wait, of
    // a thousand threads, can be counted beside them.
    bool is_crowded() const noexcept {
        return (word.load(std::memory_order_relaxed) & users) >= 3072 * user;
    }

    // A user from now on. The word as it was; not a user if `generation` is not its own or it is
    // closed, and then the word says so.
    [[nodiscard]] bool enter(std::uint32_t generation, std::uint64_t& seen) noexcept {
        // Acquire: pairs with the release of who put the entry to use, and of an event.
        seen = word.fetch_add(user, std::memory_order_acquire);
        if (generation_of(seen) == generation && (seen & closed) == 0) [[likely]]
            return true;
        leave(seen, 0);
        return false;
    }
    // No user any more. `spent` is cleared, unless an event has come since `seen`.
    void leave(std::uint64_t seen, std::uint64_t spent) noexcept {
        std::uint64_t now = word.load(std::memory_order_relaxed);
        std::uint64_t next;
        do {
            next = now - user;
            if (((now ^ seen) & events) == 0) next &= ~spent;
            // Release: pairs with the acquire of last_out(), which closes.
        } while (!word.compare_exchange_weak(now, next, std::memory_order_release,
                                             std::memory_order_relaxed));
        if ((next & (owed | users)) == owed) [[unlikely]]
            last_out(next);
    }

    // Before that: has fetched what it will touch of who waits. A hint.
    void fetch_waiting(std::uint64_t flags) const noexcept;
    // An event has come: sets flags, and wakes who waits for them. Any thread. Those that wait on
    // the calling thread's executor run in the order in which they came.
    void notify(std::uint32_t generation, std::uint64_t flags) noexcept;

    // Under the lock: who waits for anything, out of it; to be woken after it.
    void claim_waiting(wait_list& into) noexcept;

    // Under the lock: the driver watches it from now on, if it did not yet.
    [[nodiscard]] std::error_code be_watched_by(io_driver& d, std::uint32_t generation) noexcept;
    // Whether it does already, and who enlists has only to tell it (io_driver::enlisted).
    bool is_watched_by(const io_driver& d) const noexcept { return watchers[0] == &d; }
    void forget_watchers(bool stays_open) noexcept;
    // It watches no more; true if it did.
    bool forget_watcher(const io_driver& d) noexcept;

    // What somebody waits for, as poll(2) has it; of another generation: nothing, and not even
    // errors (a negative number could not say that).
    short wanted(std::uint32_t generation) noexcept;
    // Has the driver watch it anew, if that one still does, in this generation.
    void watch_again(std::uint32_t generation, io_driver& d) noexcept;

private:
    void last_out(std::uint64_t seen) noexcept;
};
static_assert(sizeof(io_entry) <= cache_line_bytes);

}  // namespace detail

// One opening of a descriptor: may be copied, and outlive it. It does not own it.
class descriptor_ref {
public:
    descriptor_ref() noexcept = default;

    // Of a number that is open, and owned by the caller; `kind` is io_entry::stream or zero.
    // not_enough_memory, or bad_file_descriptor.
    static descriptor_ref adopt(int number, std::uint64_t kind, std::error_code& error) noexcept;
    // Of a number that was adopted; empty if it was not.
    static descriptor_ref find(int number) noexcept;

    explicit operator bool() const noexcept { return entry_ != nullptr; }
    detail::io_entry& entry() const noexcept { return *entry_; }
    // As what is waited for; null: of nothing.
    const void* thing() const noexcept { return entry_; }
    std::uint32_t generation() const noexcept { return generation_; }
    int number() const noexcept { return entry_ != nullptr ? entry_->number : -1; }
    bool is_open() const noexcept;

    // Whoever waits is woken and told `closed`; the number is free once the last call on it has
    // returned. False if it was closed before. Any thread.
    bool close() const noexcept;
    // The same, but the number stays open and is the caller's. Precondition: no call is under way.
    int release() const noexcept;

private:
    descriptor_ref(detail::io_entry& e, std::uint32_t g) noexcept : entry_(&e), generation_(g) {}

    detail::io_entry* entry_ = nullptr;
    std::uint32_t generation_ = 0;
};

// An opening that is closed with the object.
class descriptor {
public:
    descriptor() noexcept = default;
    explicit descriptor(descriptor_ref r) noexcept : ref_(r) {}
    descriptor(descriptor&& other) noexcept : ref_(std::exchange(other.ref_, {})) {}
    descriptor& operator=(descriptor&& other) noexcept {
        if (this != &other) {
            close();
            ref_ = std::exchange(other.ref_, {});
        }
        return *this;
    }
    ~descriptor() { close(); }

    explicit operator bool() const noexcept { return static_cast<bool>(ref_); }
    const descriptor_ref& ref() const noexcept { return ref_; }
    int number() const noexcept { return ref_.number(); }
    void close() noexcept {
        if (ref_) std::exchange(ref_, {}).close();
    }
    int release() noexcept { return ref_ ? std::exchange(ref_, {}).release() : -1; }

private:
    descriptor_ref ref_;
};

namespace detail {

// What an object of io has: its own core, or, where it has none or was moved from, one without a
// descriptor, which every call finds closed.
template <class Core, class Owner>
Core& core_or_none(const Owner& own) noexcept {
    if (own != nullptr) [[likely]]
        return *own;
    static Core none;
    return none;
}

// The entry of an event's number; null if it was never adopted.
io_entry* find_entry(int number) noexcept;

// The flags of what poll(2) tells; epoll's events are the same bits.
std::uint64_t flags_of_poll(unsigned events) noexcept;

// Calls f(entry) for each that was ever in use.
void for_each_entry(void (*f)(io_entry&, void*), void* with) noexcept;

}  // namespace detail
}  // namespace weft
