// await, sync_wait of a task: the task starts on the caller's own thread, in a flow of its own.
//
// Design: the task is a flow separate from the fiber or thread that waits for the task, because the
// task may migrate to another executor while the waiter stays. The first turn runs within the call;
// the caller then waits for the rest, if any. A stop of the caller is forwarded to the task, and
// the caller still waits for the task's end.
//
// Limits: in the body of a C++20 coroutine neither can suspend, and the call ends the program:
// write co_await there.
//
//   int n = weft::await(price("apple"));        // in a fiber
//   int m = weft::sync_wait(price("apple"));    // on a thread
#pragma once

#include "weft/task/detail/task_run.hpp"
#include "weft/wait/await.hpp"

namespace weft {

template <class T>
T await(task<T>&& t, std::source_location caller = std::source_location::current()) {
    flow& f = detail::blocking_flow(caller);
    const detail::unwinding_shield until_it_is_through(f);
    if (!detail::task_run<T>::takes(t)) return detail::adapter_to(std::move(t)).wait(f);
    detail::task_run<T> run(std::move(t), *f.home);
    run->run_to_end(f);
    return run.take();
}
template <class T>
T await(task<T>& t, std::source_location caller = std::source_location::current()) {
    return await(std::move(t), caller);
}
template <class T>
T sync_wait(task<T>&& t, std::source_location caller = std::source_location::current()) {
    return await(std::move(t), caller);
}
template <class T>
T sync_wait(task<T>& t, std::source_location caller = std::source_location::current()) {
    return await(std::move(t), caller);
}

}  // namespace weft
