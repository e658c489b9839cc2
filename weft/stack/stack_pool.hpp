// stack_pool: keeps the stacks of an allocator for the next coroutine.
//
// Design: the stack released last is acquired first, because its pages are there and its lines are
// in the cache. Each thread keeps up to 64 free stacks for itself, without a lock or an atomic
// read-modify-write; behind that is the pool's list under a lock, then the allocator.
//
//      acquire:  thread's cache  ->  pool's list, newest first  ->  allocator
//      release:  thread's cache  ->  (its older half) pool's list
//      trim:                         pool's list, oldest first  ->  allocator  ->  the system
//
// Unused stacks are released without a trim, a few whenever a loop of weft is idle
// (release_unused), down to the minimum; trim is for a thread without a loop, and for an immediate
// release.
//
// Any thread may acquire, release, trim, read statistics and set limits; a stack may be released on
// another thread than it was acquired on. A thread that ends leaves its cache to the pool.
//
// Limits: destruction, set_stack_bytes and clear are for when no other thread uses the pool.
//
//   weft::stack_pool<> stacks(64 * 1024, {.min_count = 100, .max_count = 10'000});
//   weft::coroutine<> c(body, {.stack = stacks});
//   stacks.trim(16);  // at most 16 free stacks go back to the system now
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

#include "weft/stack/detail/pool_core.hpp"
#include "weft/stack/slab_stack.hpp"
#include "weft/stack/stack.hpp"
#include "weft/stack/stack_pool_options.hpp"

namespace weft {

template <stack_allocator A = slab_stack>
class stack_pool {
public:
    constexpr explicit stack_pool(std::size_t stack_bytes = default_stack_bytes,
                                  const stack_pool_options& limits = {}) noexcept
        requires std::constructible_from<A, std::size_t>
        : allocator_(stack_bytes), core_(&allocator_, detail::pool_verbs_of<A>, limits) {}

    explicit stack_pool(A allocator, const stack_pool_options& limits = {}) noexcept
        requires std::move_constructible<A>
        : allocator_(std::move(allocator)), core_(&allocator_, detail::pool_verbs_of<A>, limits) {}

    stack_pool(const stack_pool&) = delete;
    stack_pool& operator=(const stack_pool&) = delete;

    // Empty at the maximum, or if the allocator has no more.
    stack acquire() noexcept { return core_.acquire(); }

    // Precondition: s came from this pool and is not empty.
    void release(stack s) noexcept { core_.release(s); }

    std::size_t stack_bytes() const noexcept { return allocator_.stack_bytes(); }

    // The pool without its type, one call less: used to make a stack_allocator_ref.
    constexpr stack_allocator_ref source() noexcept { return core_.source(); }

    // Releases up to max_count free stacks to the allocator, the oldest first, never going below
    // the minimum, and returns how many. The stacks in other threads' caches are out of reach;
    // those threads return them at their next release.
    std::size_t trim(std::size_t max_count = ~std::size_t{0}) noexcept {
        return core_.trim(max_count);
    }

    // As an idle loop does: releases at most 32 free stacks that were not used for a second, those
    // in the calling thread's cache included, never going below the minimum. Returns when to call
    // again: `now` if more may be released at once, `never` if nothing is left.
    time_point release_unused(time_point now) noexcept { return core_.release_unused(now); }

    // Releases every free stack of every thread.
    void clear() noexcept { core_.clear(); }

    // Stacks that are out keep their size and return to the allocator when they are released; no
    // free stack of the old size is acquired again.
    void set_stack_bytes(std::size_t stack_bytes) noexcept
        requires detail::resizable_allocator<A>
    {
        core_.change_size([&]() noexcept { allocator_.set_stack_bytes(stack_bytes); });
    }

    // Below the present count, a maximum admits no new stack, and each release reduces the count.
    void set_limits(const stack_pool_options& limits) noexcept { core_.set_limits(limits); }
    stack_pool_options limits() const noexcept { return core_.limits(); }

    stack_pool_stats stats() const noexcept { return core_.stats(); }

    // Walks everything; aborts if an invariant does not hold.
    void check() const noexcept { core_.check(); }

private:
    A allocator_;
    detail::pool_core core_;  // after the allocator: its destructor releases the stacks to it
};

}  // namespace weft
