// spin_lock: for the few instructions in which a queue of waiters is changed.
//
// Design: one byte, one exchange, and no owner ever waits, allocates or runs user code. A thread
// that finds the lock taken checks a few times more and then yields the processor, because the
// owner may have lost the processor.
//
//   weft::detail::spin_lock lock;
//   const std::lock_guard held(lock);
//
// Model: test/model/spin_lock_test.cpp
#pragma once

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

class spin_lock {
public:
    constexpr spin_lock() noexcept = default;
    spin_lock(const spin_lock&) = delete;
    spin_lock& operator=(const spin_lock&) = delete;

    void lock() noexcept {
        if (taken_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
            lock_slowly();
    }
    [[nodiscard]] bool try_lock() noexcept {
        return taken_.exchange(1, std::memory_order_acquire) == 0;
    }
    void unlock() noexcept { taken_.store(0, std::memory_order_release); }

private:
    WEFT_COLD void lock_slowly() noexcept {
        for (int looks = 0;; ++looks) {
            // Relaxed: only a hint when to try the exchange.
            if (taken_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
            if (looks < 16)
                spin_pause();
            else
                spin_yield();
        }
    }

    // Orders: each exchange acquires, and pairs with the release of unlock().
    atomic<unsigned char> taken_{0};
};

}  // namespace weft::detail
