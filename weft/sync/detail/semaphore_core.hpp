// semaphore_core: a count of free permits and the queue of waiters for a permit: the common part of
// the semaphores and auto_reset_event.
//
// Design: a permit that is released while a waiter is queued goes to the first waiter, and is never
// free for a later caller to take. The order of arrival is therefore the order of service.
//
// Invariants:
// P1  while a waiter is queued, no permit is free
//
// Model: test/model/locks_test.cpp
#pragma once

#include <cstddef>
#include <source_location>

#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/sync/detail/timed.hpp"

namespace weft::detail {

class semaphore_core {
public:
    using word = atomic_wait_queue::word;
    static constexpr word unit = atomic_wait_queue::unit;
    static constexpr std::size_t most = ~word{0} / unit / 2;

    explicit constexpr semaphore_core(std::size_t free, std::size_t limit,
                                      const char* what) noexcept
        : queue_(free * unit), limit_(limit), what_(what) {}

    [[nodiscard]] bool try_acquire() noexcept {
        // P1: no permit is free while a waiter is queued.
        for (word w = queue_.load(); w >= unit && (w & atomic_wait_queue::waiters) == 0;) {
            if ((w & atomic_wait_queue::busy) != 0) return try_acquire_slowly();
            if (queue_.change(w, w - unit)) return true;
        }
        return false;
    }

    // Releases n permits; aborts if that exceeds the limit.
    void release(std::size_t n, std::source_location caller) noexcept;
    // Releases one permit, if the limit allows.
    void release_within_limit() noexcept;
    void clear() noexcept;  // removes all free permits

    std::size_t free() const noexcept { return queue_.value() / unit; }

private:
    friend class acquire_operation;
    bool try_acquire_slowly() noexcept;
    void hand_out(word free) noexcept;  // call under the lock; releases the lock

    atomic_wait_queue queue_;
    const std::size_t limit_;
    const char* const what_;
};

class [[nodiscard]] acquire_operation {
public:
    static constexpr bool reports_stop = false;

    explicit acquire_operation(semaphore_core& p) noexcept : permits_(&p) {}
    // Only before the operation is awaited.
    acquire_operation(acquire_operation&& other) noexcept : permits_(other.permits_) {}
    acquire_operation& operator=(const acquire_operation&) = delete;
    ~acquire_operation() {
        if (node_.given) [[unlikely]]
            permits_->release_within_limit();  // the frame was destroyed before take()
    }

    bool ready() noexcept { return permits_->try_acquire(); }
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) {
        node_.given = false;
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }

private:
    semaphore_core* permits_;
    queue_node node_;
};

using timed_acquire_operation = timed<acquire_operation>;

}  // namespace weft::detail
