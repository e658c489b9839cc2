// weft_sleep, weft_nanosleep, weft_poll: the waits of a fiber for time and descriptors, as POSIX's.
#include <errno.h>

#include <chrono>

#include "weft/base/errno.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/poll_many.hpp"
#include "weft/posix/detail/timespec.hpp"
#include "weft/wait/sleep.hpp"

using namespace weft;

namespace {

int let_pass(duration d) {
    detail::may_end_here ends;
#if WEFT_EXCEPTIONS
    try {
        await(sleep_for(d));
    } catch (const std::bad_alloc&) {
        set_errno(ENOMEM);
        return ends.went_on(-1);
    }
#else
    await(sleep_for(d));
#endif
    return ends.went_on(0);
}

}  // namespace

extern "C" {

unsigned weft_sleep(unsigned seconds) {
    return let_pass(std::chrono::seconds(seconds)) == 0 ? 0 : seconds;
}

int weft_usleep(unsigned microseconds) { return let_pass(std::chrono::microseconds(microseconds)); }

int weft_nanosleep(const timespec* time, timespec* left) {
    if (!detail::is_time(*time) || time->tv_sec < 0) {
        errno = EINVAL;
        return -1;
    }
    if (left != nullptr) *left = {};
    return let_pass(detail::duration_of(*time));
}

int weft_poll(pollfd* fds, nfds_t count, int timeout_ms) {
    if (!this_fiber::exists()) return ::poll(fds, count, timeout_ms);
    detail::may_end_here ends;
#if WEFT_EXCEPTIONS
    try {
        return ends.went_on(detail::poll_many(fds, count, detail::poll_deadline(timeout_ms)));
    } catch (const std::bad_alloc&) {
        set_errno(ENOMEM);
        return ends.went_on(-1);
    }
#else
    return ends.went_on(detail::poll_many(fds, count, detail::poll_deadline(timeout_ms)));
#endif
}

}  // extern "C"
