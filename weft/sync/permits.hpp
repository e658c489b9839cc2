// permits: a number of things to be had one by one, and the line of those who want one: what
// semaphores and the auto_reset_event have in common.
//
// Its one idea: a permit that is released while somebody waits is handed to the first in line, and
// never lies about for a passer-by. So the order of arrival is the order of service.
//
// Invariants:
// P1  where somebody waits, no permit is free
//
// Model: test/model/locks_test.cpp
#pragma once

#include <cstddef>
#include <source_location>

#include "weft/sync/timed.hpp"
#include "weft/sync/word_queue.hpp"

namespace weft::detail {

class permits {
public:
    using word = word_queue::word;
    static constexpr word unit = word_queue::unit;
    static constexpr std::size_t most = ~word{0} / unit / 2;

    explicit constexpr permits(std::size_t free, std::size_t limit, const char* what) noexcept
        : queue_(free * unit), limit_(limit), what_(what) {}

    [[nodiscard]] bool try_acquire() noexcept {
        // P1: there are none to be had where there are waiters.
        for (word w = queue_.load(); w >= unit && (w & word_queue::waiters) == 0;) {
            if ((w & word_queue::busy) != 0) return try_acquire_slowly();
            if (queue_.change(w, w - unit)) return true;
        }
        return false;
    }

    // n more; ends the program if that are more than the limit.
    void release(std::size_t n, std::source_location place) noexcept;
    // One more, if the limit allows.
    void release_within_limit() noexcept;
    void clear() noexcept;  // none

    std::size_t free() const noexcept { return queue_.value() / unit; }

private:
    friend class acquire_operation;
    bool try_acquire_slowly() noexcept;
    void hand_out(word free) noexcept;  // under the lock, which it releases

    word_queue queue_;
    const std::size_t limit_;
    const char* const what_;
};

class [[nodiscard]] acquire_operation {
public:
    static constexpr bool reports_stop = false;

    explicit acquire_operation(permits& p) noexcept : permits_(&p) {}
    // Before it is awaited.
    acquire_operation(acquire_operation&& other) noexcept : permits_(other.permits_) {}
    acquire_operation& operator=(const acquire_operation&) = delete;
    ~acquire_operation() {
        if (node_.given) [[unlikely]]
            permits_->release_within_limit();  // its frame was destroyed in between
    }

    bool ready() noexcept { return permits_->try_acquire(); }
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) {
        node_.given = false;
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }

private:
    permits* permits_;
    queue_node node_;
};

using timed_acquire_operation = timed<acquire_operation>;

}  // namespace weft::detail
