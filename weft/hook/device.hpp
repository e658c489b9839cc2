// device: a call on a descriptor for which the system has none that does not wait.
//
// Its one idea: a file that can be opened a second time, as a terminal or a pipe with a name, is
// opened so for the call, with O_NONBLOCK: that is of this description, and the program's own stays
// as it is. It is closed before anything waits, so that no other end misses the program's close.
// Any other is asked first whether it is ready, under a lock, so that of two fibers of one program
// the second does not find taken what both have seen. Another program may still take it in between;
// then the thread waits.
//
// Model: none, its locks are spin_locks, and the one word beside them is set once.
#pragma once

#include <sys/types.h>

#include "weft/base/atomic.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/hook/calls.hpp"

namespace weft::hook {

// One for all descriptors with the same end of their number.
spin_lock& lock_of(int fd) noexcept;

// Whether a call would find something, be it an error. Keeps nothing waiting.
bool is_ready(int fd, short events) noexcept;

// Whether an error stands at the socket that a call which has moved a part leaves for the next one.
// A local socket leaves none: there the system's own call takes it and says nothing.
bool keeps_error(int fd, bool reads) noexcept;

// Of a writer of a local socket, which has moved a part or has waited: the error that it takes from
// the socket, as the system's own call does before it looks further. 0: there is none.
int error_of_local_writer(int fd) noexcept;
// The error that stands at the socket; it stands there no more.
int take_error(int fd) noexcept;
// MSG_NOSIGNAL for a local socket, whose writer gets no SIGPIPE once it waits; else 0. Keeps errno.
int quiet_while_waiting(int fd) noexcept;

// Whether a wait for messages is at its end, which only a call that waits is told of, and the
// socket is to wait no more (receive_with() has it where it is).
bool is_over(int fd) noexcept;

// Whether the byte that would come next is the urgent one. A call that has a part ends before it.
bool is_at_mark(int fd) noexcept;

// The family of a socket: AF_INET and so on.
int family_of(int fd) noexcept;

// Whether SO_RCVLOWAT was ever set by this process: until then nobody asks for it.
extern atomic<bool> low_water_was_set;
inline bool has_low_water() noexcept {
    return low_water_was_set.load(std::memory_order_relaxed);  // it stands for itself
}
std::size_t low_water_of(int fd) noexcept;

// Whether close() of it may wait until what was sent has been taken: SO_LINGER with a time.
bool lingers(int fd) noexcept;
// For setsockopt(): until then nobody asks for that.
void note_option(int level, int name) noexcept;

// The attempts below fail with EAGAIN where they would wait. None of them is for a descriptor that
// is not to wait: that has its own call.

// Of a file that has a name: by a description of weft's own. EOPNOTSUPP: it cannot be opened again.
ssize_t try_apart(int fd, const iovec* v, int count, bool reads) noexcept;

// As readv(2), with the modes of the terminal: lines, VMIN and VTIME. In a fiber.
ssize_t read_terminal(int fd, const iovec* v, int count);
ssize_t try_write_terminal(int fd, const iovec* v, int count) noexcept;

// Whether the steering side of a terminal is closed: a wait for bytes of it ends with EIO then, and
// a call that is made later finds what is left of a terminal that has hung up.
bool is_without_other_side(int fd) noexcept;

// A part that it takes without waiting once it is ready; in one call of the system's, whichever
// buffers it lies in, as that may be a message (a pipe with O_DIRECT), or one thing among those of
// others.
ssize_t try_write_part(int fd, const iovec* v, int count, std::size_t most) noexcept;

// The same of the side that steers a terminal, which takes what it has room for though the other is
// closed. It lets others run before it says that there is none.
ssize_t try_write_steering(int fd, const iovec* v);

// Of an eventfd, which takes eight bytes of each buffer: of the first, and only what fits. It lets
// others run before it says that nothing does.
ssize_t try_write_counter(int fd, const iovec* v, int count);

// What follows a receive that may have opened descriptors (SCM_RIGHTS): they are new here.
void opened_by(const msghdr& m) noexcept;

}  // namespace weft::hook
