// opening: the common part of the waits of hooked calls: the entry of a descriptor in weft/io's
// table, and the result of a wait that a stop has ended.
//
// Design: a wait that lasts queries the system which file the fd is of. If that is not the file
// that the entry was made for, the fd was closed and opened behind all hooks (by a system call of
// the program's own): then the waiters for the old file are notified that it was closed, what is
// known of the fd is forgotten, and the entry is opened again. So neither a call on ready data nor
// a wait that is soon over makes a query, and no wait stays with a file that no longer exists:
//
//      opening_of ---> waits for trusted_wait ---> same_opening: the old file's? ---> waits on
//                            |  notified                |  another's
//                            +--> the call again <------+
//
// Files without an inode of their own (eventfds and similar have one for all) are distinguished
// by the calls that open and close them.
//
// Model: none, one lock has one opener at a time; a check without it is between two generations.
#pragma once

#include <chrono>

#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {

// How long to wait for a descriptor that no driver can watch, before it is queried again.
inline constexpr auto blind_wait = std::chrono::milliseconds(5);

// How long an entry is trusted to be that of its fd without a query. A query touches what a call on
// a socket does not, and costs half a microsecond where a hundred sockets take turns.
inline constexpr auto trusted_wait = std::chrono::milliseconds(5);

// A descriptor generation of an fd that is about to be awaited.
struct opening {
    detail::descriptor_ref of;  // empty if none, and `error` says why
    bool fresh = false;         // it was made here
    bool replaces = false;      // another file's: the call was made on that file
    bool asked = true;          // false: to be queried once the wait has lasted
    int error = 0;
};
opening opening_of(int fd) noexcept;
// As opening_of(), and queries the system.
opening asked_opening_of(int fd) noexcept;

// The fd is open, and one of weft's own sockets, files or watches: no hooked call waits for it.
bool is_of_weft(int fd) noexcept;

// Every wait for that generation ends, and none begins; the program closes the fd.
void end_opening(weft::detail::io_entry& e, std::uint64_t generation) noexcept;

// In a child that fork() has made, on its one thread: the waiters and the watches of generations
// are its parent's. The epoll sets and rings are shared with the parent: they are not notified of
// what is closed here.
void clear_parents_waits() noexcept;

// A call found nothing: the flags are clear until the next event, which may have come already.
void spend(const detail::descriptor_ref& of, snapshot seen, bool fresh,
           std::uint64_t flags) noexcept;

// The answer for a wait that a stop has ended: ECANCELED, or ETIMEDOUT for the deadline of a scope.
int why_stopped(const waiter* w) noexcept;

// Whether no wait is possible here, because the fiber is being ended, or the caller is no fiber.
bool is_ending() noexcept;

// The error with which the call fails. After a stop, lets others run first, and may throw
// weft::stopped (stops.hpp).
int after_wait(int why);

}  // namespace weft::hook
