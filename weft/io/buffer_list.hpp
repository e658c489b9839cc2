// buffer_list: several buffers that one system call fills or empties (readv, writev, recvmsg,
// sendmsg), and how far the transfer has come.
//
// Design: a window of up to 32 buffers moves over the caller's list. So nothing is allocated,
// whatever the length of the list, and IOV_MAX is never reached: a longer list takes one more call
// for each 32 buffers. Empty buffers are not put into the window.
//
// Limits: the caller's list stays unchanged, and at its address, until the operation has ended.
//
//   const std::array<std::span<const std::byte>, 2> parts{head, body};
//   auto sent = stream.write_all(parts);                // one system call
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "weft/base/detail/min_max.hpp"

namespace weft {

// Several buffers as an argument: converts from any range that converts to a span of spans. {} does
// not convert; it means one empty buffer.
template <class Byte>
class buffers_of {
public:
    using list = std::span<const std::span<Byte>>;

    template <class Range>
        requires std::constructible_from<list, Range&&>
    buffers_of(Range&& all) noexcept : all_(std::forward<Range>(all)) {}  // implicit

    operator list() const noexcept { return all_; }

private:
    list all_;
};

namespace detail {

template <class Byte>
class buffer_list {
public:
    static constexpr std::size_t window = 32;

    explicit buffer_list(std::span<const std::span<Byte>> all) noexcept : rest_(all) {}

    // Moves the window on: these bytes were transferred.
    void advance(std::size_t bytes) noexcept {
        while (bytes != 0) {
            const std::size_t left = rest_.front().size() - done_;
            if (bytes < left) {
                done_ += bytes;
                return;
            }
            bytes -= left;
            rest_ = rest_.subspan(1);
            done_ = 0;
        }
    }

    // Puts the next buffers into message(), at most `most` bytes. Returns the byte count, zero if
    // nothing is left. From now on the object stays at its address.
    std::size_t fill(std::size_t most = SIZE_MAX) noexcept {
        std::size_t count = 0;
        std::size_t bytes = 0;
        std::size_t skipped = done_;
        for (const std::span<Byte> b : rest_) {
            const std::size_t left = detail::min_of(b.size() - skipped, most - bytes);
            if (left != 0) {
                parts_[count++] = {const_cast<std::byte*>(b.data() + skipped), left};
                bytes += left;
            }
            skipped = 0;
            if (count == window || bytes == most) break;
        }
        message_.msg_iov = parts_;
        message_.msg_iovlen = static_cast<decltype(message_.msg_iovlen)>(count);
        return bytes;
    }
    ::msghdr& message() noexcept { return message_; }
    std::span<const std::span<Byte>> rest() const noexcept { return rest_; }

private:
    std::span<const std::span<Byte>> rest_;
    std::size_t done_ = 0;  // done in the first of them
    ::iovec parts_[window];
    ::msghdr message_{};
};

}  // namespace detail
}  // namespace weft
