// manager_errc: the outcomes that are a task_manager's own. A task that was cancelled is told as
// std::errc::operation_canceled, one that was late as std::errc::timed_out, and a manager that was
// stopped refuses with errc::closed.
//
//   if (m.resume(id, move) == weft::manager_errc::no_such_task) forget(id);
#pragma once

#include <system_error>

namespace weft {

enum class manager_errc {
    no_such_task = 1,   // none has that id; one that had it has ended, and is gone
    already_ending,     // it is over, or was cancelled, killed or late before
    already_started,    // start of a task that is no longer `created`
    too_many_tasks,     // as many live as may
    id_in_use,          // the id that was given is another task's
    other_type,         // the value is of another type than who waits for it takes, or gives
    not_taken,          // a value that it was resumed with before waits to be taken still
    nobody_waits,       // for a reply of that number: it came too late, or twice
    killed,             // the task was killed
    value_taken,        // somebody has joined it before, and has what it returned
    waits_for_itself,   // a task joins itself
    waits_in_a_circle,  // a task joins one that waits for its end
};

const std::error_category& manager_category() noexcept;

inline std::error_code make_error_code(manager_errc e) noexcept {
    return {static_cast<int>(e), manager_category()};
}

}  // namespace weft

template <>
struct std::is_error_code_enum<weft::manager_errc> : std::true_type {};
