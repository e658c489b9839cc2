// receive_buffers: what a driver lends to receivers (lent_bytes.hpp).
//
// Its one idea: a buffer is lent when bytes have come, and not while they are waited for, so that a
// few serve many connections. One block of memory is cut into slots; when all are out, more come
// from the heap: no party waits for a buffer, since its owner may be waiting for that party.
//
//      block: [ slot 0 | slot 1 | ... ]    free ones: the last given back is lent first, or
//                                          handed to the system, which chooses (io_uring)
//
// Memory is taken with the first buffer, and stays while one is out, also when the driver has gone.
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/spin_lock.hpp"

namespace weft::detail {

class receive_buffers {
public:
    static constexpr unsigned usual_count = 1024;
    static constexpr std::size_t usual_bytes = 2048;
    static constexpr unsigned most = 65536;  // io_uring can choose from half as many

    // Hands a slot to the system. Under the lock.
    using hand_over = void (*)(void* to, std::byte* slot, unsigned index) noexcept;

    receive_buffers() noexcept = default;
    receive_buffers(const receive_buffers&) = delete;

    // Before the first is lent. The count is rounded up to a power of two.
    void resize(unsigned count, std::size_t bytes) noexcept;
    unsigned count() const noexcept { return count_; }
    std::size_t bytes() const noexcept { return bytes_; }  // of each

    // A buffer, and back again. Any thread. Null: there is no memory.
    [[nodiscard]] std::byte* take() noexcept;
    void give_back(std::byte* buffer) noexcept;
    std::size_t out_count() const noexcept;

    // All slots are the system's from now on, each when it is given back. False: no memory.
    bool hand_to(hand_over f, void* to) noexcept;
    // It has filled that one, which is out now.
    std::byte* chosen(unsigned index) noexcept;
    void hand_to_nobody() noexcept;

    // By its owner, in place of delete.
    void let_go() noexcept;

private:
    ~receive_buffers();
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
    std::byte* free_ = nullptr;  // each holds the next in its first word
    unsigned fresh_ = 0;         // from here on slots have never been used
    std::size_t out_ = 0;
    bool ownerless_ = false;
    hand_over hand_over_ = nullptr;
    void* system_ = nullptr;
};

}  // namespace weft::detail
