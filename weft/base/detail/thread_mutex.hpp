// thread_mutex, thread_condition: weft's own, unless the build replaces them by a checker's.
//
// Design: as for atomic<T> (atomic.hpp): code that blocks a whole thread uses these two names, so
// that test/model can compile the very same sources, and walk the orders in which threads take the
// mutex, sleep, are notified and come too late. Elsewhere they are using-declarations.
//
// The checker knows lock, try_lock and unlock; wait and wait_until; notify_one and notify_all. A
// wait with a deadline ends there when the test says so (model/thread_mutex.hpp).
//
//   weft::detail::thread_mutex lock;
//   weft::detail::thread_condition changed;
//   std::unique_lock held(lock);
//   changed.wait_until(held, weft::after(weft::steady_now(), 5ms));
//
// Model: test/model/thread_mutex_test.cpp
#pragma once

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/system_mutex.hpp"

#if WEFT_MODEL
#include <model/thread_mutex.hpp>
#endif

namespace weft::detail {

#if WEFT_MODEL
using model::thread_condition;
using model::thread_mutex;
#else
using thread_condition = system_condition;
using thread_mutex = system_mutex;
#endif

}  // namespace weft::detail
