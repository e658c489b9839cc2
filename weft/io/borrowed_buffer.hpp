// borrowed_buffer: bytes that have come, in a buffer that is borrowed from the driver.
//
// Design: a reader needs no buffer while it waits. If ten of a thousand connections have data to
// read, they take ten buffers, and not a thousand.
//
// Limits: the object may be moved, kept, and destroyed on any thread, also after the stream and the
// loop are destroyed. The count and size of a driver's buffers: io_driver::set_read_buffers. When
// all of them are in use, further ones come from the heap.
//
//   while (auto r = s.read_borrowed()) {                      // result<borrowed_buffer>
//       if (r->empty()) break;                          // the peer has ended
//       if (!s.write_all(r->span())) break;
//   }                                                   // each buffer is given back here
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "weft/io/detail/buffer_pool.hpp"

namespace weft {

namespace detail {
class read_borrowed_operation;
}

class [[nodiscard]] borrowed_buffer {
public:
    borrowed_buffer() noexcept = default;  // nothing
    borrowed_buffer(borrowed_buffer&& other) noexcept
        : lender_(other.lender_), bytes_(std::exchange(other.bytes_, {})) {}
    borrowed_buffer& operator=(borrowed_buffer&& other) noexcept {
        if (this != &other) {
            reset();
            lender_ = other.lender_;
            bytes_ = std::exchange(other.bytes_, {});
        }
        return *this;
    }
    // Releases the buffer to its driver. Any thread.
    ~borrowed_buffer() { reset(); }

    std::span<std::byte> span() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return bytes_.size(); }
    bool empty() const noexcept { return bytes_.empty(); }

    // Gives the buffer back early.
    void reset() noexcept {
        if (bytes_.data() != nullptr) lender_->release_buffer(std::exchange(bytes_, {}).data());
    }

private:
    friend class detail::read_borrowed_operation;
    borrowed_buffer(detail::buffer_pool& lender, std::span<std::byte> bytes) noexcept
        : lender_(&lender), bytes_(bytes) {}

    detail::buffer_pool* lender_ = nullptr;
    std::span<std::byte> bytes_;  // begins where the buffer does
};

}  // namespace weft
