// fd_table: the type of each descriptor: a byte for each fd, learnt when it is first needed and
// forgotten when the fd is opened or closed.
//
//      fd ---> [number_table] ---> byte        type | what is known besides
//
// Design: it has nothing that the system would not report again, so the system is simply queried
// about an fd that was opened before, or without a hooked call. Any fd of up to 2^30 has a byte.
// Reads take no lock. A thread that learns and a thread that invalidates at the same time do so
// about an fd that is being closed while it is used, which is the program's own race.
//
// The waiters for a descriptor, and its generations, are in the table of weft/io (descriptor.hpp).
//
// Model: none, hook_test has the protocol of an entry.
// TODO(test): the entry of a descriptor, opened and closed by several, under the model.
#pragma once

#include <cstdint>

namespace weft::hook {

struct fd_sort {
    std::uint8_t bits = 0;

    // Of the first three bits.
    static constexpr std::uint8_t unknown = 0;
    static constexpr std::uint8_t stream = 1;   // a socket of bytes
    static constexpr std::uint8_t message = 2;  // a socket of messages
    static constexpr std::uint8_t pipe = 3;
    static constexpr std::uint8_t device = 4;    // any other awaited file: a timer, a mouse
    static constexpr std::uint8_t file = 5;      // always ready
    static constexpr std::uint8_t terminal = 6;  // the programs' side, and not the master side
    static constexpr std::uint8_t counter = 7;   // an eventfd
    static constexpr std::uint8_t sort_mask = 7;
    // The system has no call for it that does not wait, for reading or for writing.
    static constexpr std::uint8_t no_try_read = 8;
    static constexpr std::uint8_t no_try_write = 16;
    // The master side of a terminal, which takes written bytes in parts.
    static constexpr std::uint8_t steers = 32;

    std::uint8_t sort() const noexcept { return bits & sort_mask; }
    bool has(std::uint8_t b) const noexcept { return (bits & b) != 0; }
    bool is_socket() const noexcept { return sort() == stream || sort() == message; }
};

// As far as it is known.
fd_sort known_sort(int fd) noexcept;
// Queries the system; unknown if the fd is not open.
fd_sort learn_sort(int fd) noexcept;
// For an fd that belonged to a file: a call on a file has no attempt that does not wait, and would
// block its thread if the fd belonged to a pipe or a socket by now, behind all hooks. Pipes and
// sockets have no file offset, and a query for the offset costs half of fstat(2).
fd_sort sort_of_file(int fd) noexcept;
inline fd_sort sort_of(int fd) noexcept {
    const fd_sort s = known_sort(fd);
    if (s.sort() == fd_sort::file) return sort_of_file(fd);
    return s.sort() != fd_sort::unknown ? s : learn_sort(fd);
}
void add_to_sort(int fd, std::uint8_t bits) noexcept;

void invalidate_sort(int fd) noexcept;
void invalidate_sorts(unsigned first, unsigned last) noexcept;

// Whether it is nonblocking: O_NONBLOCK. The system is queried each time, since any owner of the
// file may change it, another process too: so query when a call would wait, and not before.
bool is_nonblocking(int fd) noexcept;

}  // namespace weft::hook
