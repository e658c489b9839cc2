// managed_status: the state of a managed task, a fiber or a C++20 task.
//
// Design: the last four are final, and the first cause wins: a task that was cancelled is
// `cancelled` from then on, also while its destructors run, and whatever comes after.
//
//   created --> running <--> waiting --> done
//      |           |            |
//      +-----------+------------+------> cancelled, killed, timed_out
//
// Limits: whether a task that has a cause is also done is what managed_handle::over() says.
//
//   if (weft::is_final(h.status())) log(weft::name_of(h.status()));
#pragma once

#include <cstdint>
#include <system_error>

#include "weft/manager/manager_errc.hpp"

namespace weft {

enum class managed_status : std::uint8_t {
    created,    // its first turn has not started
    running,    // or ready to run
    waiting,    // for any event
    done,       // its function has returned, or thrown
    cancelled,  // it was requested to stop
    killed,     // it was killed, or its executor ended
    timed_out,  // its deadline came
};

constexpr bool is_final(managed_status s) noexcept { return s >= managed_status::done; }

constexpr const char* name_of(managed_status s) noexcept {
    switch (s) {
        case managed_status::created:
            return "created";
        case managed_status::running:
            return "running";
        case managed_status::waiting:
            return "waiting";
        case managed_status::done:
            return "done";
        case managed_status::cancelled:
            return "cancelled";
        case managed_status::killed:
            return "killed";
        case managed_status::timed_out:
            return "timed_out";
    }
    return "unknown";
}

// The error code for such an end; a zero code where it is none.
inline std::error_code make_error_of(managed_status s) noexcept {
    switch (s) {
        case managed_status::cancelled:
            return std::make_error_code(std::errc::operation_canceled);
        case managed_status::killed:
            return manager_errc::killed;
        case managed_status::timed_out:
            return std::make_error_code(std::errc::timed_out);
        default:
            return {};
    }
}

}  // namespace weft
