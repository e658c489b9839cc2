// stops: what a hooked call says where a stop of its fiber refuses or ends its wait (hook.hpp,
// stop_answer).
//
//   refused ---> by library: the first on the stack that the table knows
//                  canceled -----> ECANCELED, ETIMEDOUT for the deadline of a scope
//                  interrupted --> EINTR
//                  unwind -------> weft::stopped, thrown through the frames of the library
//   the 100th in a row ----------> unwind; where a frame is in the way: a line of report, and from
//                                  then on each refusal takes 10 ms
//
// Its one idea: there is no answer that every library takes for an end. So what is known of some is
// a table, and what is not known is bounded: code that asks again and again is unwound.
//
// Before anything is thrown each frame up to the fiber's own is looked at: whether it has unwind
// tables, and whether it is noexcept at that call. Where one cannot be left so, nothing is thrown,
// and that is told of once for the fiber.
//
// Model: none, the one word is read as a whole.
#pragma once

#include "weft/hook/hook.hpp"

namespace weft::hook {

// How many refused waits in a row are one too many.
inline constexpr unsigned most_refusals = 100;

// Of a wait that was refused or ended with `why`, ECANCELED or ETIMEDOUT: what the call fails with.
// May throw weft::stopped. In a fiber; elsewhere it is `why`.
int answer_to_stop(int why);

// Whether an exception from here comes to where the running coroutine has begun: no frame in the
// way is noexcept there, or without unwind tables; or, if that is given, to the frame that has it.
bool can_be_unwound(const void* up_to = nullptr);

// The fiber has waited: what comes to be refused from now on is not in a row with what was.
void has_waited() noexcept;

// So many fibers could not be unwound. The first 64 are told of on standard error.
std::uint64_t stuck_count() noexcept;

// What the library wants, by the name of its file. False: it is not known.
bool answer_of_library(const char* path, stop_answer& into) noexcept;

// By its name, as WEFT_HOOK_STOP has it. False: it is none.
bool parse_stop_answer(const char* name, stop_answer& into) noexcept;

}  // namespace weft::hook
