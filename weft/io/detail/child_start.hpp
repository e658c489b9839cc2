// child_start: starts a child process, from clone() to its program.
//
// Design: as with vfork(2), the child uses this process's memory until its program starts, and the
// thread that starts it is suspended. So nothing is copied, and the parent reads what failed in the
// child as a value. posix_spawn(3) does the same, but sets no limits.
//
//    parent   block all signals, clone ------------ suspended ------------- unblock, read the error
//    child                        \-> signals, group, streams, directory, limits, program (or exit)
//
// The child has its own stack, so the size of the caller's does not matter. It makes system calls
// and nothing else: no lock, no allocation, no function of the C library that could have state, be
// hooked by weft::hook or be replaced by a sanitizer. No signal is handled in the child.
//
// Under ThreadSanitizer, whose clone() is a fork, the child has a copy of the memory. So the error
// is stored in memory that both share, on every system: qemu and valgrind make a copy too.
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
    const char* const* places = nullptr;  // paths of the program to try in order; null at the end
    char* const* command = nullptr;
    char* const* environment = nullptr;
    const char* working_directory = nullptr;  // null: this program's
    int streams[3] = {-1, -1, -1};            // from 3 on, closed on exec; -1: unchanged
    bool err_is_out = false;                  // stream 2 is the same as 1
    bool leads_session = false;
    bool takes_terminal = false;  // stream 0 becomes the terminal of its session
    ::pid_t group = -1;           // 0: a new one; -1: this program's
    const child_limit* limits = nullptr;
    std::size_t limit_count = 0;
};

// The child's process ID once its program has started. On an error, here or in the child, there is
// no child.
result<::pid_t> start_child(const child_plan&) noexcept;

}  // namespace weft::detail
