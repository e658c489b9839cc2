// thread_cache: the free stacks of one pool that one thread keeps for itself.
//
// Its one idea: only the owner moves `end`, so acquire and release are a load and a store; others
// read it for statistics, and may lower `full` to ask for the stacks: the owner's next release then
// takes the slow path.
//
//      entries   | oldest | ....... | newest |        |        |
//                                             ^ end             ^ full
//
// Each thread has a table of pointers to its caches, one entry for each of up to 63 pools; a pool
// beyond them does without. A thread that ends gives its caches back; what happens on it later, in
// the destructors of other thread-local objects, goes to the pools directly. One that is idle
// brings what it does not use to the pool (cache_registry::give_back).
//
// Model: none, the owner alone acts on `end`, and learns late of `full` as well as early.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/base/clock.hpp"
#include "weft/base/tls.hpp"
#include "weft/stack/stack.hpp"

namespace weft::detail {

class pool_core;

struct thread_cache {
    static constexpr std::size_t entry_count = 64;

    // Written by the owner, read by anyone for statistics: relaxed, nothing is published by them.
    // The entries themselves are the owner's alone.
    std::atomic<stack*> end = entries;
    std::atomic<stack*> lowest = entries;  // of `end` since the owner last held the pool's lock

    // Written under the pool's lock by anyone, read by the owner: relaxed, it may learn late.
    std::atomic<stack*> full = entries;

    // The stacks that are the pool's present size: bytes() - low_bytes < span_bytes.
    std::size_t low_bytes = 0;
    std::size_t span_bytes = ~std::size_t{0};

    time_point period_end = time_point::min();  // when the owner next brings what it does not use

    thread_cache* next = nullptr;   // of the pool's caches, under its lock
    thread_cache** home = nullptr;  // the entry in the owner's table, under the registry's lock
    pool_core* pool = nullptr;

    stack entries[entry_count];

    std::size_t count() const noexcept { return count_to(end); }
    std::size_t count_to(const std::atomic<stack*>& p) const noexcept {
        return static_cast<std::size_t>(p.load(std::memory_order_relaxed) - entries);
    }
};

// One thread's caches.
struct thread_table {
    static constexpr std::uint32_t pool_count = 64;  // the first is nobody's

    // By a pool's index. The last is for pools beyond the count, and stays null like the first.
    thread_cache* entries[pool_count + 1];
    std::uint32_t highest;  // the highest index of a cache that was made here
    bool ended;
};

// Which thread has caches of which pools. Its lock may be taken under a pool's, whose allocator may
// be over another pool, and so no pool's is taken under it.
struct cache_registry {
    // A cache for the calling thread, or null: no more indices, no memory, a thread that has ended.
    static thread_cache* make(pool_core&) noexcept;

    // Frees all caches of a pool, which are empty; no other thread uses the pool.
    static void forget(pool_core&) noexcept;

    // The calling thread ends.
    static void leave() noexcept;

    // The calling thread is idle: every pool that any thread has a cache of gives back what lies
    // unused, see base/give_back.hpp.
    static time_point give_back(time_point now) noexcept;

private:
    static bool keeps_any(const thread_table& mine) noexcept;
};

}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::thread_table, weft_tls_stack_caches, this_thread_stacks);
