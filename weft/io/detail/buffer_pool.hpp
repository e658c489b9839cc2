// buffer_pool: a driver's buffers for reads that bring none (borrowed_buffer.hpp).
//
// Design: a buffer is taken when bytes have come, and not while a read waits, so that a few buffers
// serve many connections. One block of memory is cut into slots; when all slots are in use, further
// buffers come from the heap: no reader waits for a buffer, since the owner of a buffer may be
// waiting for that reader.
//
//      block: [ slot 0 | slot 1 | ... ]    free slots: the last one given back is used first;
//                                          or the system has them, and chooses (io_uring)
//
// Memory is allocated with the first buffer, and stays while a buffer is in use, also after the
// driver was destroyed.
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/detail/spin_lock.hpp"

namespace weft::detail {

class buffer_pool {
public:
    static constexpr unsigned usual_count = 1024;
    static constexpr std::size_t usual_bytes = 2048;
    static constexpr unsigned most = 65536;  // io_uring can choose from half as many

    // Gives a slot to the system. Under the lock.
    using hand_over = void (*)(void* to, std::byte* slot, unsigned index) noexcept;

    buffer_pool() noexcept = default;
    buffer_pool(const buffer_pool&) = delete;

    // Before the first buffer is used. The count is rounded up to a power of two.
    void resize(unsigned count, std::size_t bytes) noexcept;
    unsigned count() const noexcept { return count_; }
    std::size_t bytes() const noexcept { return bytes_; }  // size of each

    // Takes a buffer, and gives it back. Any thread. Null: there is no memory.
    [[nodiscard]] std::byte* take() noexcept;
    void release_buffer(std::byte* buffer) noexcept;
    std::size_t out_count() const noexcept;

    // Gives all slots to the system: the free ones now, the others when they are given back. False:
    // no memory.
    bool hand_to(hand_over f, void* to) noexcept;
    // The system has filled this one, which is in use now.
    std::byte* chosen(unsigned index) noexcept;
    void hand_to_nobody() noexcept;

    // For the owner, instead of delete.
    void release() noexcept;

private:
    ~buffer_pool();
    bool make_block() noexcept;
    std::byte* slot(unsigned index) const noexcept { return block_ + index * bytes_; }
    bool is_slot(const std::byte* b) const noexcept {
        return block_ != nullptr && b >= block_ && b < block_ + count_ * bytes_;
    }
    std::byte* pop_free() noexcept;

    mutable spin_lock lock_;  // guards what follows
    unsigned count_ = usual_count;
    std::size_t bytes_ = usual_bytes;
    std::byte* block_ = nullptr;
    std::byte* free_ = nullptr;  // each holds the address of the next in its first word
    unsigned fresh_ = 0;         // from here on slots have never been used
    std::size_t out_ = 0;
    bool ownerless_ = false;
    hand_over hand_over_ = nullptr;
    void* system_ = nullptr;
};

}  // namespace weft::detail
