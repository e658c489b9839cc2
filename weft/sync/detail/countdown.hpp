// countdown: a count, and the waiters that its end wakes: the common part of manual_reset_event,
// latch and wait_group.
//
// Design: a count. A wait passes while the count is zero, and does not change the count.
//
// Model: test/model/locks_test.cpp
#pragma once

#include <cstddef>
#include <source_location>

#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/sync/detail/timed.hpp"

namespace weft::detail {

class countdown {
public:
    using word = atomic_wait_queue::word;
    static constexpr word unit = atomic_wait_queue::unit;
    static constexpr std::size_t most = ~word{0} / unit;

    constexpr countdown(std::size_t bars, const char* what, std::source_location caller) noexcept
        : queue_(bars * unit), what_(what) {
        WEFT_ASSERT_AT(bars <= most, "a countdown begins beyond its maximum", caller);
    }

    bool is_open() const noexcept { return queue_.value() == 0; }
    std::size_t bars() const noexcept { return queue_.value() / unit; }

    void add(std::size_t n, std::source_location caller) noexcept;  // raises the count by n
    // Lowers the count by n. The call that reaches zero wakes all waiters. Aborts if the count is
    // below n.
    void remove(std::size_t n, std::source_location caller) noexcept;
    void set_bars(std::size_t n) noexcept;  // sets the count to n; wakes all waiters at 0

private:
    friend class countdown_operation;

    atomic_wait_queue queue_;
    const char* const what_;
};

class [[nodiscard]] countdown_operation {
public:
    static constexpr bool reports_stop = false;

    explicit countdown_operation(countdown& g) noexcept : gate_(&g) {}
    // Only before the operation is awaited.
    countdown_operation(countdown_operation&& other) noexcept : gate_(other.gate_) {}
    bool ready() const noexcept { return gate_->is_open(); }
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }

private:
    countdown* gate_;
    queue_node node_;
};

using timed_gate_operation = timed<countdown_operation>;

}  // namespace weft::detail
