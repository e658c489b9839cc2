// stdio_waits: what stdio reads and writes inside libc waits as a fiber.
//
// Design: glibc calls read, write and close of a FILE by a table of functions, one table for each
// sort of stream, which it has where programs do not write. The entries of the tables that a
// fiber's streams use are replaced, each once: the new ones make the hooked calls in a fiber whose
// hooks are on, and go on to libc's own everywhere else.
//
//      fgets(file) ---> libc: FILE.table ---> [14] read ---> in_fiber::read(fileno) or libc's
//                                             [15] write
//
// Limits: glibc on a 64-bit machine, whose table has the functions where they are looked for; where
// it has not (another libc, a cookie's stream), streams wait with their thread as ever.
//
// Model: none, an entry goes once from libc's function to weft's, under a lock.
#pragma once

#include <cstdio>

namespace weft::hook {

// Before a call on it in a fiber: has its table replaced, if that was not done.
void let_stream_wait(FILE* file) noexcept;

// For as long as it stands, streams wait with their thread: what libc does with all of them at once
// may not be interrupted by another fiber of the thread.
class streams_block_scope {
public:
    streams_block_scope() noexcept;
    streams_block_scope(const streams_block_scope&) = delete;
    streams_block_scope& operator=(const streams_block_scope&) = delete;
    ~streams_block_scope();
};

}  // namespace weft::hook
