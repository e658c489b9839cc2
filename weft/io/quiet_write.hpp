// write_quietly: write(2) where a pipe without a reader is an error, and no signal.
//
// Its one idea: what MSG_NOSIGNAL is for a socket, RWF_NOSIGNAL is for everything, since
// Linux 6.18. Before it, SIGPIPE is blocked in the calling thread while it writes, and taken back
// if the write has raised it: two system calls more for each write. What the program does with
// SIGPIPE is never changed, and one that was pending before stays so.
//
// Model: none, the one flag remembers a refusal of the system, and spares a call.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace weft::detail {

// At least zero, or -errno; -EAGAIN for what would wait.
std::int64_t write_quietly(int number, const void* data, std::size_t bytes) noexcept;
// The same of several buffers.
std::int64_t write_quietly(int number, const ::iovec* parts, int count) noexcept;

// The same on every system; the slower of the two.
std::int64_t write_with_sigpipe_blocked(int number, const void* data, std::size_t bytes) noexcept;

// sendfile(2) likewise, by the slower of the two: it has no flag for it. As write(2) it gives -1
// with errno.
::ssize_t send_file_quietly(int to, int from, std::uint64_t offset, std::size_t bytes) noexcept;
// The same of splice(2), from a pipe.
::ssize_t splice_quietly(int pipe, int to, std::size_t bytes) noexcept;

}  // namespace weft::detail
