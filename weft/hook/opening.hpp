// opening: what the waits of hooked calls have in common: the entry of a descriptor in weft/io's
// table, and how a wait ends that a stop has ended.
//
// Its one idea: a wait that lasts asks the system which file the number is of. Where that is not
// the one that the entry was made for, the number was closed and opened behind all hooks (by a
// system call of the program's own): then what waits for the old file is told that it was closed,
// what is known of the number is forgotten, and the entry is opened anew. So neither a call on
// ready data nor a wait that is over soon asks anything, and no wait stays with a file that has
// gone:
//
//      opening_of ---> waits for trusted_wait ---> same_opening: the old file's? ---> waits on
//                            |  told                    |  another's
//                            +--> the call again <------+
//
// Files that the system does not number (eventfds and their kin, all of one inode) are told apart
// by the calls that open and close them.
//
// Model: none, one lock has one opener at a time; a look without it is between two generations.
#pragma once

#include <chrono>

#include "weft/hook/readiness.hpp"

namespace weft::hook {

// How long to wait for what no driver can watch, before it is asked again.
inline constexpr auto blind_wait = std::chrono::milliseconds(5);

// How long an entry is taken for that of its number without a question. A question touches what a
// call on a socket does not, and costs half a microsecond where a hundred sockets take turns.
inline constexpr auto trusted_wait = std::chrono::milliseconds(5);

// Of a number that is about to be waited for.
struct opening {
    descriptor_ref of;      // empty: there is none, and `error` says why
    bool fresh = false;     // it was made here
    bool replaces = false;  // another file's: what the call was made by is of that
    bool asked = true;      // false: to be asked about once the wait has lasted
    int error = 0;
};
opening opening_of(int fd) noexcept;
// The same, and the system is asked.
opening asked_opening_of(int fd) noexcept;

// The number is open, and one of weft's own sockets, files or watches: no hooked call waits for it.
bool is_of_weft(int fd) noexcept;

// Every wait for that opening ends, and none is begun; it is the program's to close the number.
void end_opening(weft::detail::io_entry& e, std::uint64_t generation) noexcept;

// In a child that fork() has made, on its one thread: what waits for openings, and what watches
// them, is its parent's. The epoll sets and rings are shared with that: they are not told of what
// is closed here.
void forget_parents_waits() noexcept;

// A call found nothing: the flags are clear until the next event, which may have come already.
void spend(const descriptor_ref& of, sight seen, bool fresh, std::uint64_t flags) noexcept;

// The answer for a wait that a stop has ended: ECANCELED, or ETIMEDOUT for the deadline of a scope.
int why_stopped(const waiter* w) noexcept;

// Whether nothing can wait here, as the fiber is being ended, or this is none.
bool is_ending() noexcept;

// What the call says. If it was a stop that has ended the wait others run first, and it may be
// that weft::stopped is thrown (stops.hpp).
int after_wait(int why);

}  // namespace weft::hook
