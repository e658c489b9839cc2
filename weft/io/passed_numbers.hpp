// passed_numbers: passes descriptors from process to process over a local socket (SCM_RIGHTS).
//
// Design: a received fd always has an owner: first the operation, then the caller's owned_numbers.
// Those that are not taken, and those for which there was no room, are closed, and the result
// reports that there were more (recv_numbers_result::has_lost_numbers).
//
// Limits: descriptors go with bytes, at least one byte, and at most 253 descriptors with one
// message. They are closed on exec. A stream stops at them: no read joins bytes that came with
// descriptors and bytes after those. Any other read of the same bytes drops the descriptors, and
// the system closes them.
//
//   auto [ours, theirs] = weft::unix_stream::pair().value();
//   const int fds[] = {0, 1};                             // they stay the sender's as well
//   if (!ours.send_numbers(weft::bytes_of("streams"), fds)) return false;
//
//   std::array<weft::owned_number, 4> room;               // in the other process
//   auto came = theirs.recv_numbers(buffer, room);        // the first came->numbers of them
//   if (came && came->numbers == 2) use(weft::pipe_writer::adopt(room[1].release()));
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "weft/io/datagram.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/io/stream.hpp"

namespace weft {

// The most that the system takes in one message (its SCM_MAX_FD).
inline constexpr std::size_t most_passed_numbers = 253;

struct recv_numbers_result : recv_result {
    std::size_t numbers = 0;  // stored first in the caller's room; the rest of it is unchanged
    bool has_lost_numbers = false;  // more were sent: no room, or this process can have no more fds
};

namespace detail {

// A message with descriptors, stored in its operation.
class numbers_message {
public:
    numbers_message(std::span<const std::byte> from, std::span<const int> numbers) noexcept;
    numbers_message(std::span<std::byte> into, std::span<owned_number> room) noexcept;
    numbers_message(numbers_message&&) noexcept = default;  // before it is awaited
    ~numbers_message();  // closes what has come and was not taken

    bool is_refused() const noexcept { return refused_ || part_.iov_len == 0; }
    // From now on the object stays at its address.
    ::msghdr* begin() noexcept;
    // This many bytes were sent, and the descriptors with the first of them. True: all bytes were.
    bool advance(std::size_t bytes) noexcept;
    // What came with this many bytes.
    recv_numbers_result take(std::size_t bytes) noexcept;

private:
    // Calls f(fd) for each fd that has come; f owns it.
    template <class F>
    void each(F f) noexcept;

    ::iovec part_;
    ::msghdr message_{};
    std::span<owned_number> room_;
    bool refused_ = false;
    bool receives_ = false;
    // Has room for the credentials too, which the system stores first if it is asked for them.
    alignas(::cmsghdr) std::byte
        control_[CMSG_SPACE(sizeof(::ucred)) + CMSG_SPACE(most_passed_numbers * sizeof(int))];
};

class stream_send_numbers_operation final : public stream_operation {
public:
    stream_send_numbers_operation(stream_core& c, std::span<const std::byte> from,
                                  std::span<const int> numbers) noexcept;
    bool ready() noexcept;
    transfer_result take(const waiter* w, wait_status how) noexcept;

private:
    numbers_message message_;
};

class stream_recv_numbers_operation final : public stream_operation {
public:
    stream_recv_numbers_operation(stream_core& c, std::span<std::byte> into,
                                  std::span<owned_number> room) noexcept;
    bool ready() noexcept;
    result<recv_numbers_result> take(const waiter* w, wait_status how) noexcept;

private:
    numbers_message message_;
};

// For a socket that keeps message boundaries.
class message_send_numbers_operation final : public io_operation {
public:
    message_send_numbers_operation(const descriptor_ref& of, std::span<const std::byte> from,
                                   std::span<const int> numbers, duration timeout) noexcept;
    bool ready() noexcept;
    result<void> take(const waiter* w, wait_status how) const noexcept;

private:
    numbers_message message_;
};

class message_recv_numbers_operation final : public io_operation {
public:
    message_recv_numbers_operation(const descriptor_ref& of, std::span<std::byte> into,
                                   std::span<owned_number> room, duration timeout) noexcept;
    bool ready() noexcept;
    result<recv_numbers_result> take(const waiter* w, wait_status how) noexcept;

private:
    numbers_message message_;
};

}  // namespace detail
}  // namespace weft
