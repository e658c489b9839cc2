// steal_deque<T>: where a worker keeps what it is to run next, and others may take from.
//
// Its one idea: an array and two counters. The owner pushes and pops at the bottom, last in first
// out, and thieves take from the top, first in first out; only over the last entry do they meet,
// and there a compare-and-swap of top decides (Chase and Lev).
//
//   capacity 8                 owner: bottom 13   top 7: thieves
//                                          |       |
//                                          v       v
//                    +---+---+---+---+---+---+---+---+
//                    | 8 | 9 |10 |11 |12 | . | . | 7 |     entry i lies in slot i modulo 8
//                    +---+---+---+---+---+---+---+---+
//
// Who pays. A pop lowers bottom and then looks at top; a thief looks at top and then at bottom.
// Each needs a full fence in between: else the owner takes an entry without the compare-and-swap,
// because it does not see that the thieves have come so far, and a thief takes it with one. Pops
// are frequent and thefts are rare, so the fence is an asymmetric_fence: a pop has its light side,
// which is free, and thieves have the heavy one. They need it once for a round over many deques:
//
//   for (i : victims) marks[i] = victims[i].mark();       // looks at top
//   asymmetric_fence::heavy();                            // once, and only if one of them is seen
//   for (i : victims) if (T* x = victims[i].steal(marks[i]).item) ...;    // looks at bottom
//
// A mark is good for one theft; its fence lies between mark() and steal(). There is none for two
// entries or a half of them: the owner may pop without a compare-and-swap whatever is not at the
// top that it sees, so a thief that goes on past the top of its mark takes what the owner has
// taken. To let it, pops would have to pay for as many of the last entries as a thief may take at
// once.
//
// What a thief finds. `empty` may be old news when it comes, as any such answer; who goes to sleep
// on it looks again after eventcount::prepare(). `lost` says that somebody took the entry of the
// mark first; there may be others.
//
// Who sees what: what a thread did before its push, the thief sees that stole. Nothing goes the
// other way.
//
// Limits: it grows, and does not shrink; arrays that became too small are kept until it is
// destroyed, because a slow thief may look into them (all together, they are smaller than the
// present one). A push that must grow throws bad_alloc when there is no memory. Each method is the
// owner's unless it says otherwise.
//
//   weft::steal_deque<job> deque;
//   deque.push(j);                                          // the owner
//   if (job* j = deque.pop()) j->run();
//   if (job* j = deque.steal().item) j->run();              // any thread
//
// Model: test/model/steal_deque_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/asymmetric_fence.hpp"
#include "weft/base/atomic.hpp"
#include "weft/base/block_cache.hpp"
#include "weft/base/platform.hpp"

namespace weft {

namespace detail {
class steal_core;
}

enum class steal_status : unsigned char {
    taken,
    empty,  // there was nothing
    lost    // somebody else was first
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
    // Whether there was nothing, so that a fence for it would be in vain.
    bool empty() const noexcept { return empty_; }

private:
    friend detail::steal_core;
    steal_mark(std::int64_t top, bool is_empty) noexcept : top_(top), empty_(is_empty) {}

    std::int64_t top_ = 0;
    bool empty_ = true;
};

namespace detail {

// The deque of untyped entries.
//
// Invariants:
// I1  an entry is in it while top <= its index < bottom, and exactly one party takes it: who raises
//     top from its index, or the owner, whose pop found top below it after the fence
// I2  top only rises, and by one; bottom is written by the owner alone
// I3  top <= bottom, but for a pop under way and for values that are seen late
// I4  array_ has a slot for each index of [top_seen_, top_seen_ + length), and top_seen_ <= top
// I5  no array that a thief may have seen is given back before the deque
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
        array_mine_[b & (length_ - 1)].store(x, std::memory_order_relaxed);  // bottom tells of it
        // Release: pairs with the acquire of a steal.
        bottom_.store(b + 1, std::memory_order_release);
        return true;
    }

    // Takes what was pushed last, if it is x and no thief has it.
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
        // Nothing there, and nothing written. Relaxed: top is not lower than is seen (I2).
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

    // Any thread. A fence lies between mark() and this.
    steal_result<void> steal(steal_mark m) noexcept {
        if (m.empty()) return {steal_status::empty, nullptr};
        // Acquire: pairs with the release of the push, or pop, that wrote what it sees.
        if (bottom_.load(std::memory_order_acquire) <= m.top_)
            return {steal_status::empty, nullptr};
        // Acquire: pairs with grow(), for an array that is newer than the bottom.
        array* const a = array_.load(std::memory_order_acquire);
        // Relaxed: it may be overwritten already, when top is higher; then what follows fails.
        void* const x = a->slots()[m.top_ & (a->length - 1)].load(std::memory_order_relaxed);
        index t = m.top_;
        // Release: pairs with make_room(), so that the slot is read before it is written again.
        // Relaxed on failure: nothing was seen that is used.
        if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_release,
                                          std::memory_order_relaxed))
            return {steal_status::lost, nullptr};
        return {steal_status::taken, x};
    }

    // How many there are: a hint to others. To the owner, at most so many. Any thread.
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
        return array_mine_[(b - 1 - n) & (length_ - 1)].load(std::memory_order_relaxed);
    }

    void check() const noexcept;

private:
    using slot = atomic<void*>;

    // The header of the slots, which follow it.
    struct array {
        index length;     // a power of two
        array* replaced;  // what it was made in place of, or null

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
        // The last one: whoever raises top has it. Relaxed: nothing is handed over.
        const bool mine =
            t == b && top_.compare_exchange_strong(t, t + 1, std::memory_order_relaxed,
                                                   std::memory_order_relaxed);
        bottom_.store(b + 1, std::memory_order_relaxed);  // empty: who sees it takes nothing
        return mine;
    }

    WEFT_COLD bool make_room(index b) noexcept;
    bool grow(index b) noexcept;

    // What thieves write.
    alignas(cache_line_bytes) atomic<index> top_{0};

    // What the owner writes, and thieves read.
    alignas(cache_line_bytes) atomic<index> bottom_{0};
    atomic<array*> array_{nullptr};

    // What is the owner's alone.
    slot* array_mine_ = nullptr;  // the slots of array_
    index length_ = 0;            // and how many
    index top_seen_ = 0;          // top, as make_room() last saw it
    asymmetric_fence fence_;
    std::size_t first_count_;
};

}  // namespace detail

template <class T>
class steal_deque {
public:
    // The first array has room for `first_count`, rounded up; it is made by the first push.
    explicit steal_deque(std::size_t first_count = 256, asymmetric_fence fence = {}) noexcept
        : core_(first_count, fence) {}
    ~steal_deque() { WEFT_DEBUG_ASSERT(empty(), "steal_deque: destroyed with something in it"); }

    // Throws bad_alloc if it is full and cannot grow; it is then as before.
    void push(T& x) {
        if (!try_push(x)) [[unlikely]]
            detail::throw_out_of_memory();
    }
    // False in place of that.
    [[nodiscard]] bool try_push(T& x) noexcept { return core_.try_push(&x); }

    // What was pushed last; null when there is nothing.
    T* pop() noexcept { return static_cast<T*>(core_.pop()); }

    // The first half of a theft, and the second, with a heavy fence in between. Any thread.
    steal_mark mark() const noexcept { return core_.mark(); }
    steal_result<T> steal(steal_mark m) noexcept {
        const steal_result<void> r = core_.steal(m);
        return {r.status, static_cast<T*>(r.item)};
    }
    // What was pushed first, with a fence for it alone. Any thread.
    steal_result<T> steal() noexcept {
        const steal_mark m = mark();
        if (!m.empty()) asymmetric_fence::heavy();
        return steal(m);
    }

    // Hints, except that the owner knows that it is empty when it is, and how many there are at
    // most. Any thread.
    std::size_t count() const noexcept { return core_.count(); }
    bool empty() const noexcept { return count() == 0; }

    std::size_t capacity() const noexcept { return core_.capacity(); }
    // The i-th of those that would be popped, or null; it may be stolen, and gone, already: good to
    // prefetch and for nothing else.
    const void* peek(std::size_t i) const noexcept { return core_.peek(i); }

    // Ends the program if it is broken.
    void check() const noexcept { core_.check(); }

private:
    detail::steal_core core_;
};

}  // namespace weft
