// this_task: the id, the state and the stop of the task that runs here.
//
// Design: the functions ask the flow that runs, so that no handle has to be passed.
//
// Limits: a task that another task awaits in place counts as part of its awaiter.
//
//   bool is_to_end() { return weft::this_task::get_stop_token().stop_requested(); }
#pragma once

#include <cstdint>

#include "weft/stop/stop_token.hpp"

namespace weft {

// How far a task has come.
enum class task_status : std::uint8_t {
    none,       // there is no task
    scheduled,  // its first turn has not come
    running,    // or waiting
    stopping,   // running or waiting, and a stop was requested
    ended,
};

// About the task that runs here. A task that another task awaits in place counts as part of its
// awaiter.
namespace this_task {

std::uint64_t id() noexcept;  // 0 outside any task
task_status status() noexcept;
stop_token get_stop_token() noexcept;  // of the running flow, of any kind

}  // namespace this_task

}  // namespace weft
