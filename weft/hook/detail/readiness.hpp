// readiness: how a hooked call waits: for a descriptor, for several, until a time point.
//
// Design: a descriptor is waited for through its entry in weft/io's table, which the driver of the
// loop watches once and for good. The entry keeps what the driver reported; a call that found
// nothing takes that back, unless something was reported since before the call:
//
//      look(fd) ---> the call ---> EAGAIN ---> until_ready(fd, as it looked): back to the call
//
// A call on ready data therefore does not check what the driver knows, and a call that waits costs
// the calls that it would cost without hooks, and one more.
//
// Results are errno values: 0 when the call is to be made, timed_out for the given deadline.
// Whatever the result, errno is as it was before. In a fiber that is being ended, or was asked to
// stop, nothing waits: the result is that of stops.hpp, which may throw, and other fibers run
// first, so that code which ignores errors and tries again starves no other fiber.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>

#include "weft/base/clock.hpp"
#include "weft/hook/detail/fiber_errno.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/io/detail/descriptor.hpp"

namespace weft::hook {

inline constexpr int timed_out = -1;

// What was known of a descriptor before a call.
struct snapshot {
    weft::detail::io_entry* entry;
    std::uint64_t ready;
};
inline snapshot look(int fd) noexcept {
    weft::detail::io_entry* const e = weft::detail::find_entry(fd);
    return {e, e != nullptr ? e->look() : 0};
}

// `around` is around all waits of the call: EINTR if one of its handlers has run before this wait.
int until_ready(int fd, snapshot seen, bool reads, time_point deadline,
                const interruptible& around);

int until(time_point moment, const interruptible& around);
int until(time_point moment);  // for a call that waits once; any handler ends it
inline int short_pause(const interruptible& around) {
    return until(after(now(), std::chrono::milliseconds(1)), around);
}
// As until(), but waits whatever is requested of the fiber.
void wait_out(time_point moment);

// Saturates: a count of seconds may be beyond all clocks.
inline duration duration_of(std::int64_t whole_seconds, std::chrono::nanoseconds rest) noexcept {
    const duration whole = saturated(std::chrono::seconds(whole_seconds));
    return whole > duration::max() - rest ? duration::max() : whole + rest;
}

// The deadline of a call on this descriptor: SO_RCVTIMEO or SO_SNDTIMEO.
time_point call_deadline(int fd, bool reads) noexcept;

// Lets all other ready flows run once; the fiber resumes, whatever was requested of it.
void let_others_run();

// Wakes the waiters of an fd that is about to be closed or was replaced, and forgets what is known
// of it. Any thread.
void leave_table(int fd) noexcept;
void leave_table(unsigned first, unsigned last) noexcept;
// All waits to write try again. Any thread.
void prompt_writers() noexcept;
// As leave_table() for each fd that is no longer open.
void leave_closed() noexcept;
// Closes an fd of weft's own.
void close_own(int fd) noexcept;
// For an fd that was just opened: what is known of it belongs to an earlier file.
int opened(int fd) noexcept;

}  // namespace weft::hook
