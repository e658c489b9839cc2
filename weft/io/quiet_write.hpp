// write_quietly: write(2) where a pipe that nobody reads is an error, and no signal.
//
// Its one idea: what MSG_NOSIGNAL is for a socket, RWF_NOSIGNAL is for everything, since
// Linux 6.18. Before it, SIGPIPE is blocked in the calling thread while it writes, and taken back
// if the write has raised it: two system calls more for each write. What the program does with
// SIGPIPE is never changed, and one that was pending before stays so.
//
// Model: none, the one flag remembers a refusal of the system, and spares a call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

// At least zero, or -errno; -EAGAIN for what would wait.
std::int64_t write_quietly(int number, const void* data, std::size_t bytes) noexcept;

// The same on every system; the slower of the two.
std::int64_t write_with_sigpipe_blocked(int number, const void* data, std::size_t bytes) noexcept;

}  // namespace weft::detail
