// await, sync_wait of a task: it runs on the caller's own thread, in a flow of its own.
//
// Its one idea: a fiber or a thread that waits for a task stays where it is, while the task may go
// over to another executor; so the task is a flow beside it, whose first turn is taken on the spot,
// and what is not done then is waited for. A stop of the caller is the task's, and it is waited for
// all the same.
//
//   int n = weft::await(price("apple"));        // in a fiber
//   int m = weft::sync_wait(price("apple"));    // on a thread
#pragma once

#include "weft/task/task_run.hpp"
#include "weft/wait/await.hpp"

namespace weft {

template <class T>
T await(task<T>&& t, std::source_location place = std::source_location::current()) {
    flow& f = detail::blocking_flow(place);
    const detail::unwinding_shield until_it_is_through(f);
    if (!detail::task_run<T>::takes(t)) return detail::bridge_to(std::move(t)).wait(f);
    detail::task_run<T> run(std::move(t), *f.home);
    run->run_to_end(f);
    return run.take();
}
template <class T>
T await(task<T>& t, std::source_location place = std::source_location::current()) {
    return await(std::move(t), place);
}
template <class T>
T sync_wait(task<T>&& t, std::source_location place = std::source_location::current()) {
    return await(std::move(t), place);
}
template <class T>
T sync_wait(task<T>& t, std::source_location place = std::source_location::current()) {
    return await(std::move(t), place);
}

}  // namespace weft
