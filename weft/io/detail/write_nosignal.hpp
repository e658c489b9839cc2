// write_nosignal: write(2), with an error and no signal for a pipe without a reader.
//
// Design: RWF_NOSIGNAL, since Linux 6.18, does for every descriptor what MSG_NOSIGNAL does for a
// socket. Before that, SIGPIPE is blocked in the calling thread during the write, and removed if
// the write has raised it: two system calls more for each write. The program's disposition of
// SIGPIPE is never changed, and a SIGPIPE that was pending before stays pending.
//
// Model: none, the one flag remembers a refusal of the system, and spares a call.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace weft::detail {

// At least zero, or -errno; -EAGAIN if it would wait.
std::int64_t write_nosignal(int number, const void* data, std::size_t bytes) noexcept;
// The same for several buffers.
std::int64_t write_nosignal(int number, const ::iovec* parts, int count) noexcept;

// The same on every system, by the slower of the two ways.
std::int64_t write_with_sigpipe_blocked(int number, const void* data, std::size_t bytes) noexcept;

// sendfile(2) in the slower way: it has no such flag. Returns -1 with errno set, as sendfile(2)
// does.
::ssize_t send_file_nosignal(int to, int from, std::uint64_t offset, std::size_t bytes) noexcept;
// The same for splice(2), from a pipe.
::ssize_t splice_nosignal(int pipe, int to, std::size_t bytes) noexcept;

}  // namespace weft::detail
