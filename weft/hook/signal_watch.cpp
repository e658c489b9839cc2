#include "weft/hook/detail/signal_watch.hpp"

#include <sys/signalfd.h>

#include <algorithm>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/opening.hpp"

namespace weft::hook {

signal_watch::signal_watch(const sigset_t& of) noexcept
    : fd_(opened(::signalfd(-1, &of, SFD_CLOEXEC | SFD_NONBLOCK))) {}

signal_watch::~signal_watch() {
    if (fd_ >= 0) close_own(fd_);
}

int signal_watch::until_pending(snapshot seen, time_point deadline,
                                const interruptible& around) const {
    if (fd_ >= 0) return until_ready(fd_, seen, true, deadline, around);
    // No fd was free for it.
    const time_point again = after(now(), blind_wait);
    const int why = until(std::min(again, deadline), around);
    return why != 0 ? why : deadline <= again ? timed_out : 0;
}

}  // namespace weft::hook
