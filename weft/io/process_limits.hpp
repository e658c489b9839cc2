// process_limits: how much a child may use; set in the child before its program starts.
//
// Design: a limit has two values, as the system has it: the soft one is in force, and the child may
// raise it up to the hard one. A single value sets both. A limit that is not set is as this
// program's.
//
// Limits: a soft value above the hard one is refused (invalid_argument), and so is one above this
// program's own hard one, unless this program is privileged (operation_not_permitted). The limits
// are set after the streams, so that a child with few files still gets them. A limit that is too
// small for the program itself is not refused: the child then ends by a signal, or with an error of
// its own.
//
//   auto p = weft::process::spawn(
//       {"unzip", "upload.zip"},
//       {.limits = {.files = 32, .memory_bytes = 1 << 30, .cpu_seconds = {10, 12}}});
//   if (!p) return p.error();      // also for a limit that is refused: there is no child then
#pragma once

#include <cstdint>

namespace weft {

// The soft and the hard limit of one resource, as setrlimit(2) has them.
struct resource_limit {
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    constexpr resource_limit() noexcept = default;  // this program's
    constexpr resource_limit(std::uint64_t both) noexcept : resource_limit(both, both) {}
    constexpr resource_limit(std::uint64_t s, std::uint64_t h) noexcept
        : soft(s), hard(h), is_set(true) {}

    std::uint64_t soft = none;
    std::uint64_t hard = none;
    bool is_set = false;
};

struct process_limits {
    resource_limit files = {};         // open files: RLIMIT_NOFILE
    resource_limit memory_bytes = {};  // of address space, used or not: RLIMIT_AS
    resource_limit stack_bytes = {};   // RLIMIT_STACK
    resource_limit file_bytes = {};    // largest size of a file; beyond, SIGXFSZ: RLIMIT_FSIZE
    resource_limit core_bytes = {};    // RLIMIT_CORE
    resource_limit cpu_seconds = {};   // beyond: SIGXCPU, then SIGKILL: RLIMIT_CPU
    resource_limit processes = {};     // and threads, of all that its user runs: RLIMIT_NPROC
};

}  // namespace weft
