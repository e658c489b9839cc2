// ring<T>: a FIFO of values that grows, for one owner: a run queue.
//
// Design: an array whose length is a power of two, and two counters that only rise. The queued
// entries lie at [head, tail) taken modulo the length. Both ends push, the front pops, and any
// entry may be read, so that the code that pops entry i can prefetch what entry i + 4 points at.
//
//   capacity 8      6   7   8   9   10                     head 6, tail 11
//                 +---+---+---+---+---+---+---+---+
//                 | 8 | 9 |10 | . | . | . | 6 | 7 |
//                 +---+---+---+---+---+---+---+---+
//
// A ring doubles when it is full, and halves when it was much too large for long. Each time the
// head has gone once round, the ring checks its size; eight checks in a row at less than an eighth
// release one half. A burst that returns therefore keeps its memory, and a steady queue allocates
// nothing. trim() releases all unneeded memory at once.
//
// Limits: one thread at a time. A push that must grow throws bad_alloc when there is no memory;
// reserve() beforehand guarantees capacity, and reserved capacity is not released. T is moved
// without throwing.
//
//   weft::detail::ring<std::coroutine_handle<>> ready;
//   ready.push_back(h);
//   while (!ready.empty()) {
//       if (ready.count() > 4) __builtin_prefetch(ready[4].address());
//       ready.pop_front().resume();
//   }
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/base/detail/pages.hpp"

namespace weft::detail {

// Invariants:
// I1  capacity is 0, or a power of two of at least least_count and what is reserved
// I2  tail - head <= capacity, also after the counters have wrapped round
// I3  exactly the slots of [head, tail) hold a T
template <class T>
class ring {
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);
    static_assert(alignof(T) <= block_cache::alignment);

public:
    static constexpr std::size_t least_count = 16;

    constexpr ring() noexcept = default;
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() {
        clear();
        release(slots_, capacity_);
    }

    bool empty() const noexcept { return head_ == tail_; }
    std::size_t count() const noexcept { return tail_ - head_; }
    std::size_t capacity() const noexcept { return capacity_; }

    // The i-th from the front. i < count().
    T& operator[](std::size_t i) noexcept {
        WEFT_DEBUG_ASSERT(i < count(), "ring: there is no such entry");
        return slot(head_ + i);
    }
    const T& operator[](std::size_t i) const noexcept { return const_cast<ring&>(*this)[i]; }

    // Throw bad_alloc if the ring is full and cannot grow; the ring is then unchanged.
    void push_back(T x) {
        if (count() == capacity_) [[unlikely]]
            grow(capacity_ + 1);
        detail::construct_at(&slot(tail_), std::move(x));
        ++tail_;
    }
    // As push_back(), but returns false in place of a bad_alloc.
    [[nodiscard]] bool try_push_back(T x) noexcept {
        if (count() == capacity_) [[unlikely]] {
            if (!try_grow(capacity_ + 1)) return false;
        }
        detail::construct_at(&slot(tail_), std::move(x));
        ++tail_;
        return true;
    }
    void push_front(T x) {
        if (count() == capacity_) [[unlikely]]
            grow(capacity_ + 1);
        detail::construct_at(&slot(head_ - 1), std::move(x));
        --head_;
    }

    // Precondition: the ring is not empty.
    T pop_front() noexcept {
        WEFT_DEBUG_ASSERT(!empty(), "ring: pop of an empty one");
        T& front = slot(head_);
        T x = std::move(front);
        detail::destroy_at(&front);
        if ((++head_ & (capacity_ - 1)) == 0) [[unlikely]]
            look();
        return x;
    }

    void clear() noexcept {
        for (; head_ != tail_; ++head_) detail::destroy_at(&slot(head_));
    }

    // From now on total_count entries fit without allocation. 0 ends the reservation. Throws
    // bad_alloc.
    void reserve(std::size_t total_count) {
        if (total_count > capacity_) grow(total_count);
        reserved_count_ = total_count;
    }

    // Releases at once the memory that the present entries and reserve() do not need.
    void trim() noexcept {
        const std::size_t fits = fitting(count() > reserved_count_ ? count() : reserved_count_);
        if (fits < capacity_) move_to(try_acquire(fits), fits);
        idle_rounds_ = 0;
    }

    // Aborts if an invariant does not hold. Owner.
    void check() const noexcept {
        WEFT_ASSERT(capacity_ == 0 || std::has_single_bit(capacity_), "ring: I1");
        WEFT_ASSERT((capacity_ == 0) == (slots_ == nullptr), "ring: I1");
        WEFT_ASSERT(capacity_ >= reserved_count_, "ring: I1");
        WEFT_ASSERT(count() <= capacity_, "ring: I2");
    }

private:
    static constexpr unsigned most_idle_rounds = 8;
    // From this size on a ring uses whole pages of its own, so that an outgrown array leaves no
    // hole.
    static constexpr std::size_t large_bytes = 8192;

    static constexpr std::size_t fitting(std::size_t total_count) noexcept {
        return std::bit_ceil(total_count < least_count ? least_count : total_count);
    }
    // Null when there is no memory.
    static T* try_acquire(std::size_t total_count) noexcept {
        const std::size_t bytes = total_count * sizeof(T);
        return static_cast<T*>(bytes < large_bytes ? block_cache::try_acquire(bytes)
                                                   : try_acquire_pages(bytes));
    }
    static void release(T* slots, std::size_t total_count) noexcept {
        const std::size_t bytes = total_count * sizeof(T);
        if (bytes >= large_bytes)
            release_pages(slots, bytes);
        else if (slots != nullptr)
            block_cache::release(slots, bytes);
    }

    T& slot(std::size_t at) const noexcept { return slots_[at & (capacity_ - 1)]; }

    WEFT_COLD void grow(std::size_t total_count) {
        if (!try_grow(total_count)) throw_out_of_memory();
    }
    WEFT_COLD bool try_grow(std::size_t total_count) noexcept {
        if (total_count > PTRDIFF_MAX / sizeof(T) / 2) return false;
        const std::size_t fits = fitting(total_count);
        T* slots = try_acquire(fits);
        move_to(slots, fits);
        return slots != nullptr;
    }

    // The head has gone once round.
    WEFT_COLD void look() noexcept {
        const bool idle =
            capacity_ > least_count && capacity_ / 2 >= reserved_count_ && count() < capacity_ / 8;
        idle_rounds_ = idle ? idle_rounds_ + 1 : 0;
        if (idle_rounds_ < most_idle_rounds) return;
        idle_rounds_ = 0;
        move_to(try_acquire(capacity_ / 2), capacity_ / 2);
    }

    // Moves all entries to other slots; does nothing if `slots` is null.
    void move_to(T* slots, std::size_t total_count) noexcept {
        if (slots == nullptr) return;
        std::size_t n = 0;
        for (; head_ != tail_; ++head_, ++n) {
            detail::construct_at(slots + n, std::move(slot(head_)));
            detail::destroy_at(&slot(head_));
        }
        release(slots_, capacity_);
        slots_ = slots;
        capacity_ = total_count;
        head_ = 0;
        tail_ = n;
    }

    T* slots_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
    std::size_t reserved_count_ = 0;
    unsigned idle_rounds_ = 0;  // checks in a row that found the ring nearly empty
};

}  // namespace weft::detail
