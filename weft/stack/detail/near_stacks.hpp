// near_stacks: acquires a stack from a source, and releases it, without a call if the calling
// thread's cache can serve it.
//
// Design: most sources are of a stack_pool, and most of the stacks that a thread acquires or
// releases pass through its own cache of that pool. Three tests show whether that is so, inlined
// where stacks are acquired and released all the time. If a test fails, nothing has happened, and
// the caller calls the source's own function, which does the same for every allocator.
//
//      source of a pool? ---> a cache of it here? ---> a stack in it (room for one)? ---> take, put
//              \ no                  \ no                      \ no
//               `----------------------`------------------------`-------> acquire(), release()
//
// The call is the caller's, so that it can be its last and costs the frequent path no register.
//
// Limits: the cache is the thread's, and its address is found anew each time, because code that
// runs here may continue on another thread afterwards.
//
//   weft::stack_allocator_ref from = weft::default_stacks();
//   weft::stack s = weft::detail::take_near(from);
//   if (!s) s = from.acquire();
//   if (!weft::detail::put_near(from, s)) from.release(s);
//
// Model: none, what it touches is the calling thread's (thread_cache.hpp).
#pragma once

#include "weft/base/platform.hpp"
#include "weft/stack/detail/pool_core.hpp"
#include "weft/stack/stack_allocator_ref.hpp"

namespace weft::detail {

// The calling thread's cache of the pool that s is of; null if it has none.
WEFT_ALWAYS_INLINE thread_cache* near_cache(stack_allocator_ref s) noexcept {
    const pool_core* const pool = pool_core::of(s);
    return pool != nullptr ? pool->own_cache() : nullptr;
}

// A stack of the thread's own cache; empty if that cache has none.
WEFT_ALWAYS_INLINE stack take_near(stack_allocator_ref from) noexcept {
    thread_cache* const mine = near_cache(from);
    return mine != nullptr ? mine->take() : stack{};
}

// Whether its own cache took s, which is `to`'s.
WEFT_ALWAYS_INLINE bool put_near(stack_allocator_ref to, stack s) noexcept {
    thread_cache* const mine = near_cache(to);
    return mine != nullptr && mine->put(s);
}

}  // namespace weft::detail
