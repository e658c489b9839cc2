// stdio_lock: the lock of a stream of stdio, by fiber.
//
// Design: libc's own lock of a FILE belongs to a thread, so every fiber of one thread may enter a
// stream that another of them is in the middle of using. Before it a fiber acquires a lock that
// belongs to the fiber: a record for each stream that some fiber owns, and a line of the fibers
// that wait for it. A plain thread needs no such lock: libc's lock excludes it, because the fiber
// inside owns that one as well.
//
//      fiber ---> record of the FILE (fiber, depth) ---> libc's lock of the FILE (thread) ---> call
//
// Limits: a fiber whose hooks are off has libc's lock alone, which other fibers of its thread pass.
//
//   const stdio_lock held(file);                 // in a hooked fiber waits; elsewhere nothing
//
// Model: none, each record is read and written under the lock of its list.
#pragma once

#include <cstdio>

namespace weft::hook {

// The halves of flockfile(). On a plain thread they do nothing, and trying succeeds.
void enter_stream(FILE* file);
bool try_enter_stream(FILE* file);
void leave_stream(FILE* file) noexcept;

// Waits until no other fiber is in any stream.
void wait_for_all_streams();

class stdio_lock {
public:
    explicit stdio_lock(FILE* file) : file_(file) { enter_stream(file); }
    stdio_lock(const stdio_lock&) = delete;
    stdio_lock& operator=(const stdio_lock&) = delete;
    ~stdio_lock() { leave_stream(file_); }

private:
    FILE* const file_;
};

}  // namespace weft::hook
