// driver_kqueue: readiness by kqueue(2): the driver of macOS and of the BSDs, and on Linux, over
// libkqueue, what their programs can be tested with.
//
// Design: as with epoll, a descriptor is put into the queue once, edge-triggered, stays until it is
// closed, and carries its generation, by which a late event is recognised. A filter is one
// direction: that for room to write is added at the first wait for room, or at once for TCP.
//
//      kevent   ident: the fd   filter: read or write   udata: generation, or that of wakeup_fd
//
// An end is reported by a flag of either filter, also where this side has shut down its own half:
// poll(2) is asked then which end it was.
//
// Limits: compiled where the system has <sys/event.h>, or with WEFT_WITH_KQUEUE=ON where libkqueue
// is installed. Urgent data is reported where there is EVFILT_EXCEPT (macOS, OpenBSD). A file that
// is always ready is refused, as by epoll. A forked child does not inherit a kqueue, nor does it
// run the parent's loop.
//
//   const char* why = nullptr;
//   if (auto d = weft::make_driver_kqueue(&why)) weft::loop l(std::move(d));
//   else log(why);
//
// Model: none, the system's queue is all that threads share.
#pragma once

#include <memory>

#include "weft/io/io_driver.hpp"

namespace weft {

// Null if the system or the build has no kqueue; `why` names the reason. Throws system_error if no
// descriptor is left.
std::unique_ptr<io_driver> make_driver_kqueue(const char** why);

}  // namespace weft
