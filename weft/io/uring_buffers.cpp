#include "weft/io/detail/uring_buffers.hpp"

#include "weft/base/platform.hpp"

#if WEFT_LIBURING

#include <liburing.h>
#include <sys/mman.h>

#include <cstdint>

namespace weft::detail {

bool uring_buffers::begin(::io_uring& ring, buffer_pool& pool) noexcept {
    const unsigned count = pool.count();
    const std::size_t bytes = count * sizeof(::io_uring_buf);
    void* const p =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    ::io_uring_buf_reg r{};
    r.ring_addr = reinterpret_cast<std::uintptr_t>(p);
    r.ring_entries = count;
    r.bgid = group;
    if (::io_uring_register_buf_ring(&ring, &r, 0) == 0) {
        lent_ = static_cast<::io_uring_buf_ring*>(p);
        pool_ = &pool;
        mapped_bytes_ = bytes;
        ::io_uring_buf_ring_init(lent_);
        if (pool.hand_to(lend, this)) return true;
        ::io_uring_unregister_buf_ring(&ring, group);
        lent_ = nullptr;
    }
    ::munmap(p, bytes);
    return false;
}

void uring_buffers::lend(void* self, std::byte* slot, unsigned index) noexcept {
    const auto& me = *static_cast<uring_buffers*>(self);
    const buffer_pool& b = *me.pool_;
    ::io_uring_buf_ring_add(me.lent_, slot, static_cast<unsigned>(b.bytes()),
                            static_cast<unsigned short>(index), ::io_uring_buf_ring_mask(b.count()),
                            0);
    ::io_uring_buf_ring_advance(me.lent_, 1);
}

void uring_buffers::end(::io_uring& ring) noexcept {
    if (lent_ == nullptr) return;
    pool_->hand_to_nobody();
    ::io_uring_unregister_buf_ring(&ring, group);
}

uring_buffers::~uring_buffers() {
    if (lent_ != nullptr) ::munmap(lent_, mapped_bytes_);
}

}  // namespace weft::detail

#endif
