// A scenario: a short program over one layer, run again and again while one call for memory fails.
//
// Its law: it ends, either as it does with memory or with what tells of the lack: std::bad_alloc, a
// std::system_error, or an error value, which it throws as told. Then the same scenario works in
// the same process, and nothing is lost that is not lost without a failure.
//
//   weft_alloc [--section NAME] [--kind malloc] [--call N]
//
// A child process does each, so that one that crashes is one line of the report; with --call it is
// this one, for a debugger. Exit: 0, 1 a law
// was broken, 2 misuse.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>

namespace weft::testing::alloc {

// What a scenario throws when an error value has told it.
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
