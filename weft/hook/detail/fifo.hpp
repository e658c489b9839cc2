// fifo: the open of a named pipe, which on a thread waits until the other end is opened. Here it is
// opened so that it does not wait, and checked, with pauses, until the other end is there: the
// system notifies only a thread that waits in open(2).
//
//      to read:  open ... has a writer, or has had one? ---> O_NONBLOCK off, its fd
//      to write: open ... ENXIO: no reader ---------------> again
#pragma once

namespace weft::hook {

// Whether an open(2) with these flags would wait for another end. Keeps errno.
bool is_fifo_that_waits(int directory, const char* path, int flags) noexcept;

// As openat(2), for such an open. In a fiber.
int open_fifo(int directory, const char* path, int flags);

}  // namespace weft::hook
