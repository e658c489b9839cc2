// uring_buffers: the buffers of a driver on io_uring, from which the system chooses one when data
// has come.
//
// Design: the free buffers of the driver's pool are given to the system in a ring of their own, at
// the first read that brings no buffer; the pool gives back to that ring what is released.
//
// It belongs to the driver. Before Linux 5.19 the system takes no such ring.
//
// Model: none, the lock of the pool guards what is shared.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/io/detail/buffer_pool.hpp"

struct io_uring;
struct io_uring_buf_ring;

namespace weft::detail {

class uring_buffers {
public:
    static constexpr int group = 0;  // which ring of buffers

    uring_buffers() noexcept = default;
    uring_buffers(const uring_buffers&) = delete;
    ~uring_buffers();  // after the end of the driver's ring

    // Whether the system chooses; the first call gives it the buffers. If it does not, a receiver
    // waits for readiness and makes the call. Precondition: the driver's ring is enabled.
    bool lends(::io_uring& ring, buffer_pool& pool) noexcept {
        if (std::exchange(asked_, true)) [[likely]]
            return lent_ != nullptr;
        return begin(ring, pool);
    }
    // Before the end of the driver's ring.
    void end(::io_uring& ring) noexcept;

private:
    bool begin(::io_uring& ring, buffer_pool& pool) noexcept;
    static void lend(void* self, std::byte* slot, unsigned index) noexcept;

    // What it points to is written under the lock of the pool.
    ::io_uring_buf_ring* lent_ = nullptr;
    buffer_pool* pool_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    bool asked_ = false;
};

}  // namespace weft::detail
