// stops: what a hooked call returns if a stop of its fiber refuses or ends its wait (hook.hpp,
// stop_answer).
//
//   refused ---> by library: the first on the stack that the table knows
//                  canceled -----> ECANCELED, ETIMEDOUT for the deadline of a scope
//                  interrupted --> EINTR
//                  unwind -------> weft::stopped, thrown through the frames of the library
//   the 100th in a row ----------> unwind; where a frame is in the way: a line of report, and from
//                                  then on each refusal takes 10 ms
//
// Design: no single answer is taken as an end by every library. What is known about some is
// therefore a table, and the rest is bounded: code that calls again and again is unwound.
//
// Before anything is thrown, each frame up to the fiber's own is checked: whether it has unwind
// tables, and whether it is noexcept at that call. If a frame cannot be unwound, nothing is thrown,
// and that is reported once for the fiber.
//
// Model: none, the one word is read as a whole.
#pragma once

#include "weft/hook/hook.hpp"

namespace weft::hook {

// The count of refused waits in a row at which the fiber is unwound.
inline constexpr unsigned most_refusals = 100;

// The error with which a call fails whose wait was refused or ended with `why`, ECANCELED or
// ETIMEDOUT. May throw weft::stopped. In a fiber; elsewhere the error is `why`.
int answer_to_stop(int why);

// Whether an exception from here reaches the function that began the running coroutine: no frame in
// the way is noexcept there, or without unwind tables; or, if a frame is given, whether it reaches
// that one.
bool can_be_unwound(const void* up_to = nullptr);

// The fiber has waited: later refusals do not count in a row with those before.
void has_waited() noexcept;

// The count of fibers that could not be unwound. The first 64 are reported on standard error.
std::uint64_t stuck_count() noexcept;

// The answer for a library, by the name of its file. False: the library is not known.
bool answer_of_library(const char* path, stop_answer& into) noexcept;

// The answer by its name, as WEFT_HOOK_STOP has it. False: no answer has that name.
bool parse_stop_answer(const char* name, stop_answer& into) noexcept;

}  // namespace weft::hook
