// record_lock: waits for the locks of files: fcntl's F_SETLKW and F_OFD_SETLKW, lockf and flock.
//
// Design: a lock that is not free at once is waited for by a thread of its own, in the blocking
// call. The owner of a record lock is the process, and the owner of the others is the open file, so
// any thread may wait for them. The system includes such a wait in its search for cycles (EDEADLK),
// and passes the lock on in order.
//
//      fiber                                     thread
//      tried, and owned by another ----------->  fcntl(fd, F_SETLKW)
//      a stop: signals, until it is done ----->  EINTR, and done; a lock that it got is kept
//
// The signal is the highest of the real-time ones without a handler when the first lock had to
// wait. Only these threads are sent the signal, and its handler does nothing.
//
// A fiber that is killed leaves its thread behind; a lock that the thread still gets is released.
#pragma once

namespace weft::hook {

// In a fiber. `command` is F_SETLKW or F_OFD_SETLKW, `wanted` the flock.
int wait_for_record(int fd, int command, void* wanted);

}  // namespace weft::hook
