// A scenario: a short program over one layer, run again and again while one call for memory fails.
//
// Its law: the scenario ends, either as it does with memory or with a report of the shortage:
// std::bad_alloc, a std::system_error, or an error value, which the scenario throws as `told`. Then
// the same scenario works in the same process, and nothing leaks that does not leak without a
// failure.
//
//   weft_alloc [--section NAME] [--kind malloc] [--call N]
//
// A child process runs each call, so that a crash is one line of the report; with --call this
// process runs it, for a debugger. Exit: 0, 1 a law was broken, 2 misuse.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>

namespace weft::testing::alloc {

// Thrown by a scenario that got an error value.
struct told {};

struct scenario {
    const char* name;
    void (*run)();
    // Threads take part: what they allocate, and when, is different each time.
    bool threads = false;
};

[[noreturn]] void failed(const char* condition, const char* file, int line) noexcept;

int run_all(int argc, char** argv, std::span<const scenario> all);

}  // namespace weft::testing::alloc

#define ALLOC_CHECK(condition)                                                            \
    do {                                                                                  \
        if (!(condition)) ::weft::testing::alloc::failed(#condition, __FILE__, __LINE__); \
    } while (false)
