// managed_status: where a managed task stands, be it a fiber or a C++20 task.
//
//   created --> running <--> waiting --> done
//      |           |            |
//      +-----------+------------+------> cancelled, killed, timed_out
//
// The last four are for good, and the first cause wins: a task that was cancelled is `cancelled`
// from that moment on, also while its destructors run, and whatever comes after. One that has a
// cause but is not over yet says so by managed_handle::over().
#pragma once

#include <cstdint>
#include <system_error>

#include "weft/manager/manager_errc.hpp"

namespace weft {

enum class managed_status : std::uint8_t {
    created,    // its first turn has not come
    running,    // or ready to run
    waiting,    // for whatever it is
    done,       // its function has returned, or thrown
    cancelled,  // it was asked to stop
    killed,     // it was ended, or its executor has
    timed_out,  // its time was up
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

// How such an end is told as an error; a zero code where it is none.
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
