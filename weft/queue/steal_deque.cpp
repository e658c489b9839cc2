#include "weft/queue/detail/steal_deque.hpp"

#include <bit>
#include <memory>
#include <new>

namespace weft::detail {

steal_core::~steal_core() {
    // Relaxed: the destroying thread has ensured that no other thread uses the deque.
    array* a = array_.load(std::memory_order_relaxed);
    while (a != nullptr) {
        array* const older = a->replaced;
        std::destroy_n(a->slots(), a->length);
        ::operator delete(a);
        a = older;
    }
}

// Called when no slot seems free for index b. False if there is no memory.
bool steal_core::make_room(index b) noexcept {
    // Acquire: pairs with the release of each theft before: its slot was read before it is written.
    top_seen_ = top_.load(std::memory_order_acquire);
    return b - top_seen_ < length_ || grow(b);
}

bool steal_core::grow(index b) noexcept {
    const std::size_t least = length_ == 0 ? first_count_ : static_cast<std::size_t>(length_) * 2;
    if (least > PTRDIFF_MAX / sizeof(slot) / 2) return false;
    const std::size_t count = std::bit_ceil(least < 1 ? std::size_t{1} : least);
    void* const memory = ::operator new(sizeof(array) + count * sizeof(slot), std::nothrow);
    if (memory == nullptr) return false;
    array* const before = array_.load(std::memory_order_relaxed);  // its own
    array* const a =
        std::construct_at(static_cast<array*>(memory), static_cast<index>(count), before);
    // The other slots are null, for a late thief that nevertheless reads one.
    std::uninitialized_value_construct_n(a->slots(), count);
    for (index i = top_seen_; i < b; ++i) {  // I4
        // Relaxed, both: the owner's own slots, and array_ publishes the new ones.
        void* const x = array_mine_[i & (length_ - 1)].load(std::memory_order_relaxed);
        a->slots()[i & (a->length - 1)].store(x, std::memory_order_relaxed);
    }
    array_mine_ = a->slots();
    length_ = a->length;
    // Release: pairs with the acquire of a steal. The array before stays (I5).
    array_.store(a, std::memory_order_release);
    return true;
}

void steal_core::check() const noexcept {
    // Relaxed, all: the owner's own, but for top, which may rise meanwhile.
    const index b = bottom_.load(std::memory_order_relaxed);
    const array* const a = array_.load(std::memory_order_relaxed);
    WEFT_ASSERT(top_.load(std::memory_order_relaxed) <= b, "steal_deque: I3");
    WEFT_ASSERT(top_seen_ <= top_.load(std::memory_order_relaxed), "steal_deque: I4");
    WEFT_ASSERT(b - top_seen_ <= length_, "steal_deque: I4");
    WEFT_ASSERT((a == nullptr ? 0 : a->length) == length_, "steal_deque: I4");
    WEFT_ASSERT(length_ == 0 || std::has_single_bit(static_cast<std::size_t>(length_)),
                "steal_deque: I4");
}

}  // namespace weft::detail
