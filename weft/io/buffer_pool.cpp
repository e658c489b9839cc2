#include "weft/io/detail/buffer_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>

#include "weft/base/assert.hpp"
#include "weft/base/platform.hpp"

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft::detail {
namespace {

// A buffer that was given back has no owner; a build with AddressSanitizer reports any access to
// it.
#if WEFT_ASAN
void close_off(std::byte* p, std::size_t bytes) noexcept { ASAN_POISON_MEMORY_REGION(p, bytes); }
void open_up(std::byte* p, std::size_t bytes) noexcept { ASAN_UNPOISON_MEMORY_REGION(p, bytes); }
#else
void close_off(std::byte*, std::size_t) noexcept {}
void open_up(std::byte*, std::size_t) noexcept {}
#endif

}  // namespace

buffer_pool::~buffer_pool() {
    if (block_ == nullptr) return;
    open_up(block_, count_ * bytes_);
    ::munmap(block_, count_ * bytes_);
}

void buffer_pool::resize(unsigned count, std::size_t bytes) noexcept {
    const std::lock_guard held(lock_);
    WEFT_ASSERT(block_ == nullptr && out_ == 0, "buffers are resized after the first was borrowed");
    count_ = std::bit_ceil(std::clamp(count, 1u, most));
    bytes_ = (std::clamp<std::size_t>(bytes, 64, 1u << 20) + 63) / 64 * 64;
}

bool buffer_pool::make_block() noexcept {
    if (block_ != nullptr) return true;
    void* const p = ::mmap(nullptr, count_ * bytes_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    block_ = static_cast<std::byte*>(p);
    return true;
}

// A slot of the block that is free here; null: none.
std::byte* buffer_pool::pop_free() noexcept {
    if (free_ == nullptr) return fresh_ != count_ ? slot(fresh_++) : nullptr;
    std::byte* const b = free_;
    open_up(b, bytes_);
    std::memcpy(&free_, b, sizeof free_);
    return b;
}

std::byte* buffer_pool::take() noexcept {
    {
        const std::lock_guard held(lock_);
        if (make_block()) {
            if (std::byte* const b = pop_free()) {
                ++out_;
                return b;
            }
        }
    }
    auto* const b = new (std::nothrow) std::byte[bytes_];
    if (b == nullptr) return nullptr;
    const std::lock_guard held(lock_);
    ++out_;
    return b;
}

void buffer_pool::release_buffer(std::byte* b) noexcept {
    bool last;
    {
        const std::lock_guard held(lock_);
        last = --out_ == 0 && ownerless_;
        if (!is_slot(b)) {
            // From the heap: deleted below, without the lock.
        } else if (hand_over_ != nullptr) {
            close_off(b, bytes_);
            hand_over_(system_, b, static_cast<unsigned>((b - block_) / std::ptrdiff_t(bytes_)));
            b = nullptr;
        } else {
            std::memcpy(b, &free_, sizeof free_);
            close_off(b, bytes_);
            free_ = b;
            b = nullptr;
        }
    }
    delete[] b;
    if (last) delete this;
}

std::size_t buffer_pool::out_count() const noexcept {
    const std::lock_guard held(lock_);
    return out_;
}

bool buffer_pool::hand_to(hand_over f, void* to) noexcept {
    const std::lock_guard held(lock_);
    if (!make_block()) return false;
    hand_over_ = f;
    system_ = to;
    while (std::byte* const b = pop_free()) {
        close_off(b, bytes_);
        f(to, b, static_cast<unsigned>((b - block_) / std::ptrdiff_t(bytes_)));
    }
    return true;
}

std::byte* buffer_pool::chosen(unsigned index) noexcept {
    const std::lock_guard held(lock_);
    ++out_;
    open_up(slot(index), bytes_);
    return slot(index);
}

// Buffers that the system has not used by now stay unused: the ring is being destroyed, and so are
// they.
void buffer_pool::hand_to_nobody() noexcept {
    const std::lock_guard held(lock_);
    hand_over_ = nullptr;
}

void buffer_pool::release() noexcept {
    bool last;
    {
        const std::lock_guard held(lock_);
        ownerless_ = true;
        last = out_ == 0;
    }
    if (last) delete this;
}

}  // namespace weft::detail
