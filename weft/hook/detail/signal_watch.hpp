// signal_watch: waits until a signal of a set is pending, for the process or for the loop's thread.
//
// Design: a signalfd of weft's own is watched and never read, so that it reports that a signal is
// pending and the signal stays for the call that takes it: sigtimedwait(), or a handler.
//
//   signal_watch watch(set);
//   do { seen = watch.look(); r = sigtimedwait(&set, info, &no_time); }
//   while (r < 0 && errno == EAGAIN && watch.until_pending(seen, deadline, here) == 0);
//
// Limits: it sees signals that are pending because the loop's thread blocks them. To block them is
// up to the program, as it is with threads.
#pragma once

#include <signal.h>

#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {

class signal_watch {
public:
    explicit signal_watch(const sigset_t& of) noexcept;
    signal_watch(const signal_watch&) = delete;
    signal_watch& operator=(const signal_watch&) = delete;
    ~signal_watch();

    snapshot look() const noexcept { return fd_ >= 0 ? hook::look(fd_) : snapshot{}; }
    // Returns 0, timed_out, or an errno value: EINTR when a handler has run of a signal that is
    // not blocked. In a fiber.
    int until_pending(snapshot seen, time_point deadline, const interruptible& around) const;

private:
    const int fd_;
};

}  // namespace weft::hook
