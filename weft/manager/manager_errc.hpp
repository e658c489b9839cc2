// manager_errc: the outcomes that are a task_manager's own.
//
// Design: a cancelled task is reported as std::errc::operation_canceled, a late one as
// std::errc::timed_out; a join that would close a cycle as
// std::errc::resource_deadlock_would_occur; a manager after stop_all() refuses with errc::closed.
//
// Limits: an error that the task itself returned is in the task's value, and no manager_errc.
//
//   if (m.resume(id, move) == weft::manager_errc::no_such_task) forget(id);
#pragma once

#include <system_error>

namespace weft {

enum class manager_errc {
    no_such_task = 1,     // no task has that id; a task that had it is done
    already_stopping,     // the task is done, or was cancelled, killed or timed out before
    already_started,      // start of a task that is no longer `created`
    too_many_tasks,       // at the limit of live tasks
    id_in_use,            // the given id is another task's
    type_mismatch,        // the value's type is not the waiter's, or not what the task returns
    value_pending,        // an earlier value for the task has not been taken yet
    no_such_request,      // the reply came too late, or twice
    killed,               // the task was killed
    value_already_taken,  // an earlier join has taken what the task returned
};

const std::error_category& manager_category() noexcept;

inline std::error_code make_error_code(manager_errc e) noexcept {
    return {static_cast<int>(e), manager_category()};
}

}  // namespace weft

template <>
struct std::is_error_code_enum<weft::manager_errc> : std::true_type {};
