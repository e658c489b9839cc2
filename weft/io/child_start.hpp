// child_start: the beginning of a child, from the split to its program.
//
// Its one idea: as with vfork(2), the child uses this process's memory until its program begins,
// while the thread that has begun it stands still. So nothing is copied, and what fails in the
// child is found by the parent as a value. posix_spawn(3) does the same, but sets no limits.
//
//    parent   block all signals, clone ----------- stands still ----------- unblock, read the error
//    child                        \-> signals, group, streams, folder, limits, program  (or the
//    end)
//
// The child has a stack of its own, so that it does not matter how small the caller's is. It makes
// system calls and nothing else: no lock, no allocation, no function of the C library that could
// have state, be hooked by weft::hook or be replaced by a sanitizer. No signal is handled in it.
//
// Under ThreadSanitizer, whose clone() is a fork, the child has a copy of the memory; the error has
// a place that both share, there and everywhere: qemu and valgrind make a copy too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "weft/base/result.hpp"

namespace weft::detail {

struct child_limit {
    int resource;
    std::uint64_t figures[2];  // soft and hard, as the system takes them
};

struct child_plan {
    const char* const* places = nullptr;  // of the program: the first that can be executed; null
    char* const* command = nullptr;
    char* const* environment = nullptr;
    const char* folder = nullptr;   // null: as this program's
    int streams[3] = {-1, -1, -1};  // from 3 on, closed on exec; -1: as they are
    bool err_is_out = false;        // stream 2 is the same as 1
    bool leads_session = false;
    bool takes_terminal = false;  // stream 0 becomes that of its session
    ::pid_t group = -1;           // 0: its own; -1: as this program's
    const child_limit* limits = nullptr;
    std::size_t limit_count = 0;
};

// Its number, when its program has begun. What failed, here or there: there is no child.
result<::pid_t> start_child(const child_plan&) noexcept;

}  // namespace weft::detail
