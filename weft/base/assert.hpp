// WEFT_ASSERT: a broken rule ends the program with one line that names the rule, the caller's
// source location and the agent.
//
// Design: a check that a user can trip (resume of a finished coroutine, release of a stack of
// another allocator) stays on in release builds and names the rule and the agent that broke it. A
// check of weft's own invariants is WEFT_DEBUG_ASSERT and costs nothing under NDEBUG. Neither
// throws, allocates or unwinds.
//
// The location is the line of the caller that broke the rule, and not the line in weft that found
// it: a function that users call takes the location as its last parameter and forwards it to the
// check.
//
// Limits: a destructor, an operator and a function that takes a pack have no such parameter: there
// `unknown_caller` leaves the location out, and the agent, or the object concerned, says more than
// a line of weft's. WEFT_ASSERT names its own line, for functions that no user calls.
//
//   void release(long n, std::source_location caller = std::source_location::current()) noexcept {
//       WEFT_ASSERT_AT(n >= 0, "release of a semaphore by less than nothing", caller);
//       if (is_over) weft::fail("resume of a finished coroutine", {"coroutine", id, name}, caller);
//   }
//
// prints, for the second:
//   weft: resume of a finished coroutine: coroutine 7 "login" (server.cpp:31)
#pragma once

#include <cstdint>
#include <source_location>

#include "weft/base/platform.hpp"

namespace weft {

// Label of the agent that broke a rule, or to which the fault happened. Plain pointers, so that it
// can be made anywhere, a signal handler included.
struct agent_info {
    const char* kind = nullptr;  // "coroutine", "thread", ...; null when no agent is known
    std::uint64_t id = 0;
    const char* name = nullptr;  // optional
};

// Stands for a source location that is not known.
inline constexpr std::source_location unknown_caller{};

// Prints one line to standard error and aborts. Any thread, async-signal-safe.
[[noreturn]] void fail(const char* rule, agent_info who = {},
                       std::source_location caller = std::source_location::current()) noexcept;

namespace detail {

// An argument together with the line that passes it, for a function whose last parameter is a pack:
// there the location cannot come last.
template <class T>
struct with_caller {
    T value;
    std::source_location caller;

    constexpr with_caller(T v,
                          std::source_location where = std::source_location::current()) noexcept
        : value(v), caller(where) {}
};

}  // namespace detail
}  // namespace weft

#define WEFT_ASSERT(condition, rule) \
    (__builtin_expect(!!(condition), 1) ? static_cast<void>(0) : ::weft::fail(rule))

#define WEFT_ASSERT_AT(condition, rule, caller) \
    (__builtin_expect(!!(condition), 1) ? static_cast<void>(0) : ::weft::fail(rule, {}, caller))

#if WEFT_DEBUG
#define WEFT_DEBUG_ASSERT(condition, rule) WEFT_ASSERT(condition, rule)
#else
#define WEFT_DEBUG_ASSERT(condition, rule) static_cast<void>(sizeof(!(condition)))
#endif
