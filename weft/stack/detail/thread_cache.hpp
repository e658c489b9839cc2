// thread_cache: the free stacks of one pool that one thread keeps for itself.
//
// Design: only the owner moves `end`, so acquire and release are a load and a store. Other threads
// read `end` for statistics, and may lower `full` to ask for the stacks: the owner's next release
// then takes the slow path.
//
//      entries   | oldest | ....... | newest |        |        |
//                                             ^ end             ^ full
//
// Each thread has a table of pointers to its caches, one entry for each of up to 63 pools; a pool
// beyond them has no caches. A thread that ends releases its caches. Calls that are made on it
// later, in the destructors of other thread-local objects, use the pools directly. An idle thread
// returns its unused stacks to the pool (cache_registry::release_unused).
//
// Model: none, the owner alone acts on `end`, and learns late of `full` as well as early.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/clock.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/stack/detail/asan_stack.hpp"
#include "weft/stack/stack.hpp"

namespace weft::detail {

class pool_core;

struct thread_cache {
    static constexpr std::size_t entry_count = 64;

    // Written by the owner, read by any thread for statistics. The entries themselves are the
    // owner's alone. Orders: relaxed, nothing is published by them.
    std::atomic<stack*> end = entries;
    std::atomic<stack*> lowest = entries;  // of `end` since the owner last held the pool's lock

    // Written under the pool's lock by any thread, read by the owner. Orders: relaxed, the owner
    // may read it late.
    std::atomic<stack*> full = entries;

    // The stacks that are the pool's present size: bytes() - low_bytes < span_bytes.
    std::size_t low_bytes = 0;
    std::size_t span_bytes = ~std::size_t{0};

    time_point period_end = time_point::min();  // when the owner next returns its unused stacks

    thread_cache* next = nullptr;   // of the pool's caches, under its lock
    thread_cache** home = nullptr;  // the entry in the owner's table, under the registry's lock
    pool_core* pool = nullptr;

    stack entries[entry_count];

    // The newest; empty if the cache has none.
    WEFT_ALWAYS_INLINE stack take() noexcept {
        stack* last = end.load(std::memory_order_relaxed);
        if (last == entries) [[unlikely]]
            return {};
        --last;
        end.store(last, std::memory_order_relaxed);
        if (last < lowest.load(std::memory_order_relaxed))
            lowest.store(last, std::memory_order_relaxed);
        const stack s = in_registers(*last);
        unpoison_stack(s);  // I4 of pool_core
        return s;
    }
    // False, and the stack is not taken, if the cache has no room or the stack is of another size.
    WEFT_ALWAYS_INLINE bool put(stack s) noexcept {
        stack* const last = end.load(std::memory_order_relaxed);
        if (last >= full.load(std::memory_order_relaxed)) [[unlikely]]
            return false;
        if (s.bytes() - low_bytes >= span_bytes) [[unlikely]]
            return false;  // I3 of pool_core
        WEFT_DEBUG_ASSERT(!holds(s), "release of a stack that is free already");
        *last = in_registers(s);
        end.store(last + 1, std::memory_order_relaxed);
        poison_stack(s);  // I4 of pool_core
        return true;
    }

    bool holds(stack s) const noexcept {
        for (const stack *e = entries, *last = e + count(); e != last; ++e)
            if (*e == s) return true;
        return false;
    }
    std::size_t count() const noexcept { return count_to(end); }
    // Relaxed: `p` is `end` or `lowest`.
    std::size_t count_to(const std::atomic<stack*>& p) const noexcept {
        return static_cast<std::size_t>(p.load(std::memory_order_relaxed) - entries);
    }
};

// One thread's caches.
struct thread_table {
    static constexpr std::uint32_t pool_count = 64;  // the first belongs to no pool

    // By a pool's index. The last entry is for pools beyond the count, and stays null like the
    // first.
    thread_cache* entries[pool_count + 1];
    std::uint32_t highest;  // the highest index of a cache that was made here
    bool ended;
};

// Records which thread has caches of which pools. The registry's lock may be taken under the lock
// of a pool, whose allocator may be over another pool; no pool's lock is therefore taken under it.
struct cache_registry {
    // A cache for the calling thread, or null: no more indices, no memory, a thread that has ended.
    static thread_cache* make(pool_core&) noexcept;

    // Frees all caches of a pool, which are empty; no other thread uses the pool.
    static void deregister(pool_core&) noexcept;

    // The calling thread ends.
    static void leave() noexcept;

    // The calling thread is idle: every pool that any thread has a cache of releases its unused
    // stacks, see base/detail/release_unused.hpp.
    static time_point release_unused(time_point now) noexcept;

private:
    static bool keeps_any(const thread_table& mine) noexcept;
};

}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::thread_table, weft_tls_stack_caches, this_thread_stacks);
