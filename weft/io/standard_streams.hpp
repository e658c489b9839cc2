// standard_streams: the program's own standard input, output and error, whatever they are: a
// terminal, a pipe, a socket, a file, /dev/null.
//
// Design: the open file descriptions of these three are shared with other processes (the shell, the
// other programs of a pipeline), so they are not changed. A file that would have to be made
// nonblocking is opened once more (/proc/self/fd, or else /dev/tty); each call on a socket asks not
// to block; and a regular file is left to the blocking pool, from its position in the shared
// description on.
//
// The fds 0, 1 and 2 stay open, and belong to the program; the objects that these functions return
// may be closed.
//
// Limits: a file that cannot be opened once more (a pipe of another user, after a change of user)
// is made nonblocking for every process that shares it, until the last object of such a stream is
// destroyed; a program that is ended by a signal leaves it so. The buffers of stdio are not known
// here. The modes of a terminal are not changed: terminal.hpp does that, for a scope.
//
//   auto in = weft::standard_input().value();
//   auto out = weft::standard_output().value();
//   while (auto n = in.read(buffer).value_or(0))
//       if (!out.write_all(std::span(buffer).first(n))) break;
//
// Model: none, one lock guards all that is shared.
#pragma once

#include "weft/io/pipe.hpp"

namespace weft {

// bad_file_descriptor: the program was started without it. None of them waits; any thread.
result<pipe_reader> standard_input() noexcept;
result<pipe_writer> standard_output() noexcept;
result<pipe_writer> standard_error() noexcept;

}  // namespace weft
