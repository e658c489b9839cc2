// steal_deque<T>: a work-stealing deque: a worker pushes and pops its work, other threads steal it.
//
// Design: an array and two counters. The owner pushes and pops at the bottom, last in first out,
// and thieves take from the top, first in first out. Owner and thieves compete only for the last
// entry, and there a compare-and-swap of top decides (Chase and Lev).
//
//   capacity 8                 owner: bottom 13   top 7: thieves
//                                          |       |
//                                          v       v
//                    +---+---+---+---+---+---+---+---+
//                    | 8 | 9 |10 |11 |12 | . | . | 7 |     entry i lies in slot i modulo 8
//                    +---+---+---+---+---+---+---+---+
//
// Cost. A pop lowers bottom and then reads top; a thief reads top and then bottom. Each needs a
// full fence in between. Without the fences the owner takes an entry without the compare-and-swap,
// because it does not see that the thieves have come so far, and a thief takes the same entry with
// one. Pops are frequent and thefts are rare, so the fence is an asymmetric_fence: a pop has the
// light side, which is free, and a thief has the heavy side. A thief needs the heavy fence once for
// one pass over many deques:
//
//   for (i : victims) marks[i] = victims[i].mark();       // reads top
//   asymmetric_fence::heavy();                            // once, and only if one of them is seen
//   for (i : victims) if (T* x = victims[i].steal(marks[i]).item) ...;    // reads bottom
//
// A mark is valid for one theft; its fence is between mark() and steal(). No call steals two
// entries or a half of them: the owner may pop without a compare-and-swap any entry that is not at
// the top that it sees, so a thief that continued past the top of its mark would take what the
// owner has taken. To allow such a theft, pops would have to pay for as many of the last entries as
// a thief may take at once.
//
// Result of a theft. `empty` may be out of date when it is returned; a thief that goes to sleep on
// `empty` checks again after idle_set::announce(). `lost` means that another thread took the entry
// of the mark first; the deque may hold other entries.
//
// Ordering: what a thread did before its push is visible to the thief that stole the entry. Nothing
// is ordered in the other direction.
//
// Limits: a deque grows, and does not shrink. Arrays that became too small are kept until the deque
// is destroyed, because a slow thief may read them (all together, they are smaller than the present
// array). A push that must grow throws bad_alloc when there is no memory. Each method is the
// owner's unless its comment says otherwise.
//
//   weft::detail::steal_deque<job> deque;
//   deque.push(j);                                          // the owner
//   if (job* j = deque.pop()) j->run();
//   if (job* j = deque.steal().item) j->run();              // any thread
//
// Model: test/model/steal_deque_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

class steal_core;

enum class steal_status : unsigned char {
    taken,
    empty,  // the deque was empty
    lost    // another thread took the entry first
};

template <class T>
struct steal_result {
    steal_status status;
    T* item;  // null unless taken
};

// What a thief saw before its fence.
class [[nodiscard]] steal_mark {
public:
    steal_mark() noexcept = default;  // of nothing
    // Whether the deque was empty, so that a fence for this mark would be useless.
    bool empty() const noexcept { return empty_; }

private:
    friend steal_core;
    steal_mark(std::int64_t top, bool is_empty) noexcept : top_(top), empty_(is_empty) {}

    std::int64_t top_ = 0;
    bool empty_ = true;
};

// The deque of untyped entries.
//
// Invariants:
// I1  an entry is in the deque while top <= its index < bottom, and exactly one thread takes it:
//     the thread that raises top from its index, or the owner, if its pop found top below the index
//     after the fence
// I2  top only rises, and by one; bottom is written by the owner alone
// I3  top <= bottom, except during a pop and for values that are seen late
// I4  array_ has a slot for each index of [top_seen_, top_seen_ + length), and top_seen_ <= top
// I5  no array that a thief may have seen is released before the deque is destroyed
class steal_core {
    using index = std::int64_t;  // of an entry; 2^63 pushes are more than there will be

public:
    steal_core(std::size_t first_count, asymmetric_fence fence) noexcept
        : fence_(fence), first_count_(first_count) {}
    steal_core(const steal_core&) = delete;
    steal_core& operator=(const steal_core&) = delete;
    ~steal_core();

    [[nodiscard]] bool try_push(void* x) noexcept {
        const index b = bottom_.load(std::memory_order_relaxed);  // its own
        if (b - top_seen_ >= length_) [[unlikely]] {
            if (!make_room(b)) return false;
        }
        array_mine_[b & (length_ - 1)].store(x, std::memory_order_relaxed);  // bottom publishes it
        // Release: pairs with the acquire of a steal.
        bottom_.store(b + 1, std::memory_order_release);
        return true;
    }

    // Takes the entry that was pushed last, if that entry is x and no thief has taken it.
    [[nodiscard]] bool try_pop(const void* x) noexcept {
        const index b = bottom_.load(std::memory_order_relaxed) - 1;  // its own
        // Relaxed, both: as in pop(), and its own store.
        if (top_.load(std::memory_order_relaxed) > b ||
            array_mine_[b & (length_ - 1)].load(std::memory_order_relaxed) != x)
            return false;
        return lower(b);
    }

    void* pop() noexcept {
        const index b = bottom_.load(std::memory_order_relaxed) - 1;  // its own
        // Empty: nothing is written. Relaxed: top is not lower than the value seen (I2).
        if (top_.load(std::memory_order_relaxed) > b) return nullptr;
        // Relaxed: its own store.
        void* const x = array_mine_[b & (length_ - 1)].load(std::memory_order_relaxed);
        return lower(b) ? x : nullptr;
    }

    // Any thread.
    steal_mark mark() const noexcept {
        // Relaxed, both: the fence that follows orders top; bottom is a hint.
        const index t = top_.load(std::memory_order_relaxed);
        return {t, bottom_.load(std::memory_order_relaxed) <= t};
    }

    // Any thread. The caller has a fence between mark() and this.
    steal_result<void> steal(steal_mark m) noexcept {
        if (m.empty()) return {steal_status::empty, nullptr};
        // Acquire: pairs with the release of the push, or pop, that wrote the value seen.
        if (bottom_.load(std::memory_order_acquire) <= m.top_)
            return {steal_status::empty, nullptr};
        // Acquire: pairs with grow(), for an array that is newer than the bottom.
        array* const a = array_.load(std::memory_order_acquire);
        // Relaxed: the slot may be overwritten already, if top is higher; then the exchange fails.
        void* const x = a->slots()[m.top_ & (a->length - 1)].load(std::memory_order_relaxed);
        index t = m.top_;
        // Release: pairs with make_room(), so that the slot is read before it is written again.
        // Relaxed on failure: nothing that was read is used.
        if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_release,
                                          std::memory_order_relaxed))
            return {steal_status::lost, nullptr};
        return {steal_status::taken, x};
    }

    // The count of the entries: an upper bound for the owner, a hint for other threads. Any thread.
    std::size_t count() const noexcept {
        // Relaxed: nothing is read through them.
        const index t = top_.load(std::memory_order_relaxed);
        const index n = bottom_.load(std::memory_order_relaxed) - t;
        return n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(length_); }

    const void* peek(std::size_t i) const noexcept {
        const index b = bottom_.load(std::memory_order_relaxed);  // its own
        const index n = static_cast<index>(i);
        if (n >= b - top_seen_) return nullptr;  // top_seen_ may be old, but I4 holds
        // Relaxed: its own store.
        return array_mine_[(b - 1 - n) & (length_ - 1)].load(std::memory_order_relaxed);
    }

    void check() const noexcept;

private:
    using slot = atomic<void*>;

    // The header of the slots, which follow it.
    struct array {
        index length;     // a power of two
        array* replaced;  // the array before this one, or null

        slot* slots() noexcept { return reinterpret_cast<slot*>(this + 1); }
    };

    // Takes entry b, the last; false: a thief has it.
    bool lower(index b) noexcept {
        // Release: for a thief that sees this value and no push, pairs with the acquire of a steal.
        bottom_.store(b, std::memory_order_release);
        fence_.light();  // pairs with that between mark() and steal()
        index t = top_.load(std::memory_order_relaxed);  // the fence is in front of it
        if (t < b) [[likely]]
            return true;  // I1: no thief whose mark is at b sees it
        // The last entry belongs to the thread that raises top. Relaxed: no data is passed.
        const bool mine =
            t == b && top_.compare_exchange_strong(t, t + 1, std::memory_order_relaxed,
                                                   std::memory_order_relaxed);
        bottom_.store(b + 1, std::memory_order_relaxed);  // empty: b + 1 lets no thief take
        return mine;
    }

    WEFT_COLD bool make_room(index b) noexcept;
    bool grow(index b) noexcept;

    // Written by thieves, and by the owner for the last entry.
    alignas(cache_line_bytes) atomic<index> top_{0};

    // Written by the owner, read by thieves.
    alignas(cache_line_bytes) atomic<index> bottom_{0};
    atomic<array*> array_{nullptr};

    // Only the owner's.
    slot* array_mine_ = nullptr;  // the slots of array_
    index length_ = 0;            // and how many
    index top_seen_ = 0;          // top, as make_room() last saw it
    asymmetric_fence fence_;
    std::size_t first_count_;
};

template <class T>
class steal_deque {
public:
    // The first push makes the first array, with `first_count` slots, rounded up.
    explicit steal_deque(std::size_t first_count = 256, asymmetric_fence fence = {}) noexcept
        : core_(first_count, fence) {}
    ~steal_deque() { WEFT_DEBUG_ASSERT(empty(), "steal_deque: destroyed with something in it"); }

    // Throws bad_alloc if the deque is full and cannot grow; the deque is then unchanged.
    void push(T& x) {
        if (!try_push(x)) [[unlikely]]
            throw_out_of_memory();
    }
    // As push(), but returns false in place of a bad_alloc.
    [[nodiscard]] bool try_push(T& x) noexcept { return core_.try_push(&x); }

    // Takes the entry that was pushed last; null if the deque is empty.
    T* pop() noexcept { return static_cast<T*>(core_.pop()); }

    // The first half of a theft, and the second, with a heavy fence in between. Any thread.
    steal_mark mark() const noexcept { return core_.mark(); }
    steal_result<T> steal(steal_mark m) noexcept {
        const steal_result<void> r = core_.steal(m);
        return {r.status, static_cast<T*>(r.item)};
    }
    // Takes the entry that was pushed first, with a fence for this theft alone. Any thread.
    steal_result<T> steal() noexcept {
        const steal_mark m = mark();
        if (!m.empty()) asymmetric_fence::heavy();
        return steal(m);
    }

    // Hints to other threads. For the owner, count() is an upper bound, and a true empty() is
    // definite. Any thread.
    std::size_t count() const noexcept { return core_.count(); }
    bool empty() const noexcept { return count() == 0; }

    std::size_t capacity() const noexcept { return core_.capacity(); }
    // The entry that is i-th in pop order, from 0, or null. The entry may be stolen and destroyed
    // already: use the pointer only for a prefetch.
    const void* peek(std::size_t i) const noexcept { return core_.peek(i); }

    // Aborts if an invariant does not hold.
    void check() const noexcept { core_.check(); }

private:
    steal_core core_;
};

}  // namespace weft::detail
