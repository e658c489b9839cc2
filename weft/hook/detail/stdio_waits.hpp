// stdio_waits: the reads and writes of stdio inside libc wait as a fiber.
//
// Design: glibc calls read, write and close of a FILE by a table of functions, one table for each
// kind of stream, which is in memory that programs do not write. The entries of the tables that a
// fiber's streams use are replaced, each once: the new ones make the hooked calls in a fiber whose
// hooks are on, and call libc's own everywhere else.
//
//      fgets(file) ---> libc: FILE.table ---> [14] read ---> in_fiber::read(fileno) or libc's
//                                             [15] write
//
// Limits: glibc on a 64-bit machine, whose table has the functions at the expected index. Where it
// has not (another libc, a cookie's stream), streams block their thread as before.
//
// Model: none, an entry goes once from libc's function to weft's, under a lock.
#pragma once

#include <cstdio>

namespace weft::hook {

// Before a call on it in a fiber: replaces the entries of its table, if that was not done.
void let_stream_wait(FILE* file) noexcept;

// While the object exists, streams block their thread: what libc does with all of them at once may
// not be interrupted by another fiber of the thread.
class streams_block_scope {
public:
    streams_block_scope() noexcept;
    streams_block_scope(const streams_block_scope&) = delete;
    streams_block_scope& operator=(const streams_block_scope&) = delete;
    ~streams_block_scope();
};

}  // namespace weft::hook
