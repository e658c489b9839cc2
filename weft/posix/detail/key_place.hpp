// key_place: the slot of one weft_key_t, which is used again once its key was deleted.
//
// Design: each key that has the slot has a number of its own, never used again. A value that
// outlives its key therefore finds by its number that the slot belongs to another key or to none.
//
//   weft::detail::key_place p;
//   p.take(7, std::free);                              // under the lock of all changes
//   if (auto* d = p.destructor_of(7)) d(nullptr);      // on any thread, at any time
//   p.leave();                                         // under the lock
//
// Model: test/model/key_place_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"

namespace weft::detail {

class key_place {
public:
    using destructor = void (*)(void*);

    // The number of the key that has the slot; 0: none. Acquire: pairs with take(), for a caller
    // that has the key from another thread by chance.
    std::uint64_t number() const noexcept { return number_.load(std::memory_order_acquire); }

    // Null if the key has no destructor, and if the slot belongs to another key or to none.
    destructor destructor_of(std::uint64_t number) const noexcept {
        // Acquire: pairs with take(). Before the number: what is read of a later key comes with
        // the end of the earlier one, and then the number is not the earlier one's.
        const destructor d = destructor_.load(std::memory_order_acquire);
        return this->number() == number ? d : nullptr;
    }

    void take(std::uint64_t number, destructor d) noexcept {
        // Release, both: pairs with destructor_of() and number().
        destructor_.store(d, std::memory_order_release);
        number_.store(number, std::memory_order_release);
    }
    // Relaxed: a reader of a later key's destructor sees this, by the release of take().
    void leave() noexcept { number_.store(0, std::memory_order_relaxed); }

private:
    atomic<std::uint64_t> number_{0};
    atomic<destructor> destructor_{nullptr};
};

}  // namespace weft::detail
