// atomic<T> and atomic_thread_fence: std's own, unless the build replaces them by a checker's.
//
// Design: words that threads of weft share are declared as weft::atomic, so that test/model can
// compile the very same sources with -DWEFT_MODEL=1, where each operation is a point at which the
// checker may switch to another thread, or return an older value from a load. Elsewhere it is a
// using-declaration.
//
// The checker knows load, store, exchange, compare_exchange_weak and _strong, fetch_add, fetch_sub,
// fetch_or, fetch_and, and fences; of atomic_ref load, store and compare_exchange_strong. T is
// trivially copyable and of at most eight bytes. The build of the checker renames the namespace, so
// that both kinds of weft may be in one program.
//
// A loop that spins calls spin_pause(): a hint to the processor, and for the checker a switch to
// another thread. A loop that has spun for long yields the processor by spin_yield().
//
//   weft::atomic<unsigned> word{0};
//   word.fetch_or(bit, std::memory_order_release);
//   while (word.load(std::memory_order_acquire) & bit) weft::detail::spin_pause();
//
// Model: none, it only gives the atomics a name.
#pragma once

#include <atomic>

#include "weft/base/platform.hpp"

#if !defined(WEFT_MODEL)
#define WEFT_MODEL 0
#endif

#if WEFT_MODEL
#include <model/atomic.hpp>
#endif

namespace weft {

#if WEFT_MODEL
using model::atomic;
using model::atomic_ref;
using model::atomic_thread_fence;
#else
using std::atomic;
using std::atomic_ref;
using std::atomic_thread_fence;
#endif

namespace detail {

#if WEFT_MODEL
inline void spin_pause() { model::spin(); }
inline void spin_yield() { model::spin(); }
#else
void yield_processor() noexcept;  // in spin_wait.cpp
inline void spin_pause() noexcept { cpu_pause(); }
inline void spin_yield() noexcept { yield_processor(); }
#endif

}  // namespace detail
}  // namespace weft
