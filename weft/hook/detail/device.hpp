// device: a call on a descriptor for which the system has no call that does not wait.
//
// Design: a file that can be opened a second time, as a terminal or a named pipe, is opened again
// for the call, with O_NONBLOCK. The flag belongs to the new description, and the program's own
// description stays unchanged. The new one is closed before any wait, so that no other end misses
// the program's close. For any other file the call first checks under a lock whether the file is
// ready, so that of two fibers of one program the second does not find taken what both have seen.
// Another program may still take it in between; then the thread waits.
//
// Model: none, its locks are spin_locks, and the one word beside them is set once.
#pragma once

#include <sys/types.h>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/hook/detail/calls.hpp"

namespace weft::hook {

// One lock for all descriptors with the same low bits.
detail::spin_lock& lock_of(int fd) noexcept;

// Whether a call would find something, also an error. Never waits.
bool is_ready(int fd, short events) noexcept;

// Whether the socket has an error that a call which has moved a part leaves for the next call. A
// local socket leaves none: there the system's own call takes the error and does not report it.
bool keeps_error(int fd, bool reads) noexcept;

// For a writer of a local socket that has moved a part or has waited: takes the socket's error, as
// the system's own call does before any other check. 0: the socket has no error.
int error_of_local_writer(int fd) noexcept;
// Takes the socket's error; the socket then has none.
int take_error(int fd) noexcept;
// MSG_NOSIGNAL for a local socket, whose writer gets no SIGPIPE once it waits; else 0. Keeps errno.
int quiet_while_waiting(int fd) noexcept;

// Whether a message socket is shut down for reading and nonblocking, which ends a wait for
// messages. The system reports that end only to a call that waits; on a blocking socket
// receive_with() gets it.
bool is_over(int fd) noexcept;

// Whether the next byte is the urgent one. A call that has a part ends before that byte.
bool is_at_mark(int fd) noexcept;

// The family of a socket, such as AF_INET.
int family_of(int fd) noexcept;

// Whether this process has ever set SO_RCVLOWAT: until then no call reads the option.
extern atomic<bool> low_water_was_set;
inline bool has_low_water() noexcept {
    return low_water_was_set.load(std::memory_order_relaxed);  // orders nothing else
}
std::size_t low_water_of(int fd) noexcept;

// Whether close() of fd may wait until the sent data has been taken: SO_LINGER with a time.
bool lingers(int fd) noexcept;
// Called for setsockopt(): until an option was set, no call reads it.
void note_option(int level, int name) noexcept;

// The attempts below fail with EAGAIN where they would wait. They are not for a nonblocking
// descriptor, which has its own call.

// For a file with a name: uses a description of weft's own. EOPNOTSUPP: the file cannot be opened
// again.
ssize_t try_apart(int fd, const iovec* v, int count, bool reads) noexcept;

// As readv(2), with the modes of the terminal: lines, VMIN and VTIME. In a fiber.
ssize_t read_terminal(int fd, const iovec* v, int count);
ssize_t try_write_terminal(int fd, const iovec* v, int count) noexcept;

// Whether the master side of a pseudoterminal is closed. A wait for bytes then ends with EIO, and a
// later call finds what is left of a terminal that has hung up.
bool is_without_other_side(int fd) noexcept;

// Writes a part that a ready file takes without a wait. The part is written by one system call,
// whichever buffers contain it, because it may be a message (a pipe with O_DIRECT), or one unit
// among the writes of others.
ssize_t try_write_part(int fd, const iovec* v, int count, std::size_t most) noexcept;

// As try_write_part(), for the master side of a pseudoterminal, which takes what it has room for
// even if the other side is closed. In that case the call pauses before it tries again
// (transfer.hpp).
ssize_t try_write_steering(int fd, const iovec* v) noexcept;

// For an eventfd, which takes eight bytes of each buffer: writes the first buffer, and only a value
// that fits. If the value does not fit, the call pauses before it tries again.
ssize_t try_write_counter(int fd, const iovec* v, int count) noexcept;

// Called after a receive that may have opened descriptors (SCM_RIGHTS): they are new here.
void opened_by(const msghdr& m) noexcept;

}  // namespace weft::hook
