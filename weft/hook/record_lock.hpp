// record_lock: the locks of files that are waited for: fcntl's F_SETLKW and F_OFD_SETLKW, lockf and
// flock.
//
// Its one idea: what is not to be had at once is waited for by a thread of its own, in the call
// that waits. The owner of a record lock is the process, and that of the others the open file, so
// that any thread may wait for it; the system has such a wait in the circles that it looks for
// (EDEADLK), and hands the lock over in order.
//
//      fiber                                     thread
//      tried, and held by another ------------>  fcntl(fd, F_SETLKW)
//      a stop: signals, until it is over ----->  EINTR, and over; a lock that it has, it has
//
// The signal is the highest of the real-time ones that nothing handled when the first lock had to
// be waited for. It is sent to these threads alone, and does nothing.
//
// A fiber that is killed leaves its thread behind; what that still gets, it gives back.
#pragma once

namespace weft::hook {

// In a fiber. `command` is F_SETLKW or F_OFD_SETLKW, `wanted` the flock.
int wait_for_record(int fd, int command, void* wanted);

}  // namespace weft::hook
