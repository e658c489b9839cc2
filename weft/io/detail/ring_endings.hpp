// ring_endings: the keys of what other threads want the thread of a ring to cancel.
//
// Design: a ring belongs to one thread, and a close may come from any thread; so the key is stored
// here until the ring's thread has its next turn, and a flag beside the lock says that there is
// one.
//
//   another thread:   leave(key) ... wake the ring's thread
//   the ring's:       begin_sleep() ... end_sleep() ... while (take(key)) end it
//
// The flag is a hint, and wakes nothing: a thread that has stored a key wakes the ring's thread
// afterwards (wakeup_fd.hpp), and the word of that wake makes the flag visible. A check that comes
// too early sees the flag after the sleep that the wake has ended, or prevented.
//
// Model: test/model/ring_endings_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/queue/detail/ring.hpp"

namespace weft::detail {

class ring_endings {
public:
    // Any thread. False: there is no memory, and the key is not stored.
    [[nodiscard]] bool leave(std::uint64_t key) noexcept {
        const std::lock_guard held(lock_);
        if (!keys_.try_push_back(key)) [[unlikely]]
            return false;
        any_.store(true, std::memory_order_relaxed);  // the wake orders it, or the lock
        return true;
    }
    // The ring's thread. False: there is none, as far as it knows.
    [[nodiscard]] bool take(std::uint64_t& key) noexcept {
        // Relaxed: a hint, as above; the keys are read under the lock.
        if (!any_.load(std::memory_order_relaxed)) [[likely]]
            return false;
        const std::lock_guard held(lock_);
        if (keys_.empty()) {
            any_.store(false, std::memory_order_relaxed);  // written under the lock alone
            return false;
        }
        key = keys_.pop_front();
        return true;
    }
    std::size_t count() noexcept {
        const std::lock_guard held(lock_);
        return keys_.count();
    }

private:
    spin_lock lock_;
    ring<std::uint64_t> keys_;  // under the lock
    atomic<bool> any_{false};
};

}  // namespace weft::detail
