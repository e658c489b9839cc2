// passed_numbers: descriptors that go from process to process over a local socket (SCM_RIGHTS).
//
// Its one idea: what is received is owned from the first moment on: by the operation, then by the
// caller's owned_numbers. What is not taken, and what there was no room for, is closed, and the
// caller is told that there was more (received_numbers::numbers_lost).
//
//   auto [ours, theirs] = weft::unix_stream::pair().value();
//   const int numbers[] = {0, 1};                         // they stay the sender's as well
//   if (!ours.send_numbers(weft::bytes_of("streams"), numbers)) return false;
//
//   std::array<weft::owned_number, 4> room;               // in the other process
//   auto came = theirs.recv_numbers(buffer, room);        // the first came->numbers of them
//   if (came && came->numbers == 2) use(weft::pipe_writer::adopt(room[1].release()));
//
// Numbers go with bytes, of which there is at least one, and at most 253 with one message. They are
// not open on exec.
//
// A stream stops at them: no read joins bytes that came with numbers and those behind. Any other
// read of the same bytes lets go of the numbers, and the system closes them.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "weft/io/datagram.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/io/stream.hpp"

namespace weft {

// The most that the system takes with one message (its SCM_MAX_FD).
inline constexpr std::size_t most_passed_numbers = 253;

struct received_numbers : received {
    std::size_t numbers = 0;    // the first of the caller's room; the others are as they were
    bool numbers_lost = false;  // more were sent: no room, or no more numbers for this process
};

namespace detail {

// A message with numbers, which lies in its operation.
class numbers_message {
public:
    numbers_message(std::span<const std::byte> from, std::span<const int> numbers) noexcept;
    numbers_message(std::span<std::byte> into, std::span<owned_number> room) noexcept;
    numbers_message(numbers_message&&) noexcept = default;  // before it is awaited
    ~numbers_message();  // what came, and nothing took, is closed

    bool is_refused() const noexcept { return refused_ || part_.iov_len == 0; }
    // It stays where it is from now on.
    ::msghdr* begin() noexcept;
    // So many bytes were sent, and the numbers with the first of them. True: all were.
    bool advance(std::size_t bytes) noexcept;
    // What came with so many bytes.
    received_numbers take(std::size_t bytes) noexcept;

private:
    // Calls f(number), which owns it, for each that has come.
    template <class F>
    void each(F f) noexcept;

    ::iovec part_;
    ::msghdr message_{};
    std::span<owned_number> room_;
    bool refused_ = false;
    bool receives_ = false;
    // Also of the credentials, which the system puts before them if it is asked to.
    alignas(::cmsghdr) std::byte
        control_[CMSG_SPACE(sizeof(::ucred)) + CMSG_SPACE(most_passed_numbers * sizeof(int))];
};

class stream_send_numbers final : public stream_operation {
public:
    stream_send_numbers(stream_core& c, std::span<const std::byte> from,
                        std::span<const int> numbers) noexcept;
    bool ready() noexcept;
    transferred take(const waiter* w, wait_status how) noexcept;

private:
    numbers_message message_;
};

class stream_recv_numbers final : public stream_operation {
public:
    stream_recv_numbers(stream_core& c, std::span<std::byte> into,
                        std::span<owned_number> room) noexcept;
    bool ready() noexcept;
    result<received_numbers> take(const waiter* w, wait_status how) noexcept;

private:
    numbers_message message_;
};

// Of a socket that keeps messages apart.
class message_send_numbers final : public io_operation {
public:
    message_send_numbers(const descriptor_ref& of, std::span<const std::byte> from,
                         std::span<const int> numbers, duration timeout) noexcept;
    bool ready() noexcept;
    result<void> take(const waiter* w, wait_status how) const noexcept;

private:
    numbers_message message_;
};

class message_recv_numbers final : public io_operation {
public:
    message_recv_numbers(const descriptor_ref& of, std::span<std::byte> into,
                         std::span<owned_number> room, duration timeout) noexcept;
    bool ready() noexcept;
    result<received_numbers> take(const waiter* w, wait_status how) noexcept;

private:
    numbers_message message_;
};

}  // namespace detail
}  // namespace weft
