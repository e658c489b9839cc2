// transfer: the common part of all hooked calls that move bytes: try, wait, try again, until the
// call has what a blocking call would have.
//
//      look --- attempt --- n bytes ---> enough? ---> n so far
//       ^          |  EAGAIN
//       |          v
//       +--- until ready, or the descriptor is not to wait ---> what came so far, or -1 and errno
//
// The attempt never waits. It moves bytes, and the next one continues where it has ended.
//
// A call that waits is one call for the system. If an error comes, the call ends with what has
// moved, and the error belongs to the next call. An attempt would take the error away, so before
// each attempt but the first the call checks for an error. An error that comes between the check
// and the attempt is lost. A writer of a local socket leaves none.
//
// What has moved is kept: after the first bytes any handler ends the wait, also one with
// SA_RESTART.
#pragma once

#include <sys/types.h>

#include <cerrno>

#include "weft/base/platform.hpp"
#include "weft/hook/detail/device.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook {

// The end of a wait as errno of the call: a timeout of the descriptor is EAGAIN.
inline int errno_of(int why) noexcept { return why == timed_out ? EAGAIN : why; }

// As errno of an attempt, EAGAIN after a pause: a driver that reports a level, and not an event,
// would report at once what the attempt cannot use. No system call has it.
inline constexpr int eagain_for_a_while = -EAGAIN;

// Whether the system's own call tries once, and ends with the part that it has: more may fit, or
// have come, by the time of a second attempt.
inline bool is_one_try(int fd) noexcept { return sort_of(fd).is_socket() && is_nonblocking(fd); }

// The result of the first attempt.
struct first_attempt {
    int errno_before;
    snapshot seen;  // before it
    ssize_t n;
};

// All that follows a first attempt that was not enough: apart, so that a call on ready data does
// not pay for it.
template <class Attempt, class Enough>
WEFT_NOINLINE ssize_t transfer_rest(int fd, bool reads, Attempt& attempt, Enough& enough,
                                    const ended_by& by, const first_attempt& first,
                                    interruptible_from_first_wait* whole) {
    const int before = first.errno_before;
    snapshot seen = first.seen;
    ssize_t n = first.n;
    if (n > 0 && is_one_try(fd)) return n;
    ssize_t moved = 0;
    bool waits = false;
    time_point deadline = never;
    // Around all the waits: a handler that runs between two of them also belongs to the call.
    interruptible_from_first_wait of_this;
    interruptible_from_first_wait& around = whole != nullptr ? *whole : of_this;
    for (;;) {
        int why = 0;
        if (n > 0) {
            moved += n;
        } else {
            const bool pauses = errno == eagain_for_a_while;
            why = pauses ? EAGAIN : errno;
            if (why == EAGAIN && waits && reads && is_over(fd)) [[unlikely]] {
                errno = before;
                return moved;
            }
            if (why == EAGAIN && (waits || !is_nonblocking(fd))) {
                if (!waits) deadline = call_deadline(fd, reads);
                waits = true;
                const bool restarts = moved == 0 && deadline == never;
                const interruptible& here =
                    around.before_wait(restarts ? by : ended_by::any_handler);
                why = pauses ? short_pause(here) : 0;
                if (why == 0) why = until_ready(fd, seen, reads, deadline, here);
            } else if (why == EAGAIN && moved == 0) {
                errno = why;
                refused_at_once(fd);
            }
        }
        if (why != 0) {
            errno = moved > 0 ? before : errno_of(why);
            return moved > 0 ? moved : -1;
        }
        seen = look(fd);
        if (moved > 0 && keeps_error(fd, reads)) {
            errno = before;
            return moved;
        }
        if (!reads) [[unlikely]]
            if (const int left = error_of_local_writer(fd); left != 0) {
                errno = moved > 0 ? before : left;
                return moved > 0 ? moved : -1;
            }
        n = attempt();
        if (n == 0 || (n > 0 && enough(n))) {
            if (waits) errno = before;
            return moved + n;
        }
    }
}

// attempt() is a call that fails with EAGAIN where it would wait; enough(n) is called after each
// that moved n bytes, n > 0. `by`, with its value at that time, is what ends a wait for the first
// of them that has no deadline. `whole`: of a call that makes several transfers.
template <class Attempt, class Enough>
ssize_t transfer(int fd, bool reads, Attempt attempt, Enough enough,
                 const ended_by& by = ended_by::plain_handler,
                 interruptible_from_first_wait* whole = nullptr) {
    pay_for(fd);
    const int before = errno;
    const snapshot seen = look(fd);
    const ssize_t n = attempt();
    if (n == 0 || (n > 0 && enough(n))) [[likely]]
        return n;
    return transfer_rest(fd, reads, attempt, enough, by, {before, seen, n}, whole);
}

// As above, for a call that ends with any count of bytes.
template <class Attempt>
ssize_t transfer(int fd, bool reads, Attempt attempt, const ended_by& by = ended_by::plain_handler,
                 interruptible_from_first_wait* whole = nullptr) {
    return transfer(fd, reads, attempt, [](ssize_t) noexcept { return true; }, by, whole);
}

// As writev(2) in a fiber, for a call that makes several.
namespace in_fiber {
ssize_t write_all_sorts(int fd, const iovec* v, int count, ended_by by = ended_by::plain_handler,
                        interruptible_from_first_wait* whole = nullptr);
}

// An attempt of call(flags), which receives. If a message socket is shut down for reading, a call
// that waits receives the end, and a call that does not wait receives EAGAIN. In that case the
// first is made, and does not wait.
template <class Call>
ssize_t receive_with(int fd, Call call) {
    const ssize_t n = call(MSG_DONTWAIT);
    if (n >= 0 || errno != EAGAIN || sort_of(fd).sort() != fd_sort::message) [[likely]]
        return n;
    if (is_ready(fd, POLLRDHUP) && !is_nonblocking(fd)) return call(0);
    errno = EAGAIN;
    return -1;
}

}  // namespace weft::hook
