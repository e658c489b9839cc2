// barrier: a reusable phase barrier: no waiter continues until all expected arrivals have come. As
// std's, for fibers, coroutines and threads.
//
// Design: the last caller to arrive runs the completion function within its own call, and then
// wakes all waiters.
//
// Limits: a caller that is stopped while it waits has still arrived. More arrivals than are
// expected abort. The barrier outlives its waiters.
//
//   weft::barrier b(3, []() noexcept { swap(front, back); });
//   for (;;) { work(); b.arrive_and_wait(); }
//
// Model: none, what changes, changes under the lock of its atomic_wait_queue, which has one.
#pragma once

#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/sync/detail/timed.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace detail {

// Invariants:
// B1  the word's value is the phase's number; the value changes only when the phase is complete
// B2  missing_ and expected_ are guarded by the queue's lock
class barrier_core {
public:
    using phase = atomic_wait_queue::word;

    explicit barrier_core(std::size_t expected) noexcept
        : queue_(0), missing_(expected), expected_(expected) {}

    struct arrival {
        phase in;
        bool last;  // the caller completes the phase, by complete()
    };
    arrival arrive(std::size_t n, std::size_t leave, std::source_location caller) noexcept;
    void complete() noexcept;
    bool is_over(phase p) const noexcept { return queue_.value() != p; }

private:
    friend class barrier_operation;

    atomic_wait_queue queue_;
    std::size_t missing_;   // in this phase
    std::size_t expected_;  // in the next phase
};

class [[nodiscard]] barrier_operation {
public:
    static constexpr bool reports_stop = false;

    barrier_operation(barrier_core& b, barrier_core::phase p) noexcept : barrier_(&b), phase_(p) {}
    // Only before the operation is awaited.
    barrier_operation(barrier_operation&& other) noexcept
        : barrier_(other.barrier_), phase_(other.phase_) {}
    bool ready() const noexcept { return barrier_->is_over(phase_); }
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }

private:
    barrier_core* barrier_;
    barrier_core::phase phase_;
    queue_node node_;
};

struct nothing_to_complete {
    void operator()() const noexcept {}
};

}  // namespace detail

template <class Completion = detail::nothing_to_complete>
class barrier {
    static_assert(std::is_nothrow_invocable_v<Completion&>,
                  "the completion function of a barrier is noexcept");

public:
    // The phase of an arrival.
    class [[nodiscard]] arrival_token {
        friend class barrier;
        explicit arrival_token(detail::barrier_core::phase p) noexcept : phase(p) {}
        detail::barrier_core::phase phase;
    };

    static constexpr std::ptrdiff_t max() noexcept { return PTRDIFF_MAX; }

    explicit barrier(std::ptrdiff_t expected, Completion f = Completion(),
                     std::source_location caller = std::source_location::current())
        : core_(static_cast<std::size_t>(expected)), complete_(std::move(f)) {
        WEFT_ASSERT_AT(expected >= 0, "a barrier for fewer than none", caller);
    }
    barrier(const barrier&) = delete;
    barrier& operator=(const barrier&) = delete;

    // Aborts if more arrivals come than are expected.
    arrival_token arrive(std::ptrdiff_t n = 1,
                         std::source_location caller = std::source_location::current()) {
        WEFT_ASSERT_AT(n > 0, "arrival of less than one at a barrier", caller);
        return arrival_token(enter(static_cast<std::size_t>(n), 0, caller));
    }
    // Arrives, and lowers the expected count of the later phases by one.
    void arrive_and_drop(std::source_location caller = std::source_location::current()) {
        enter(1, 1, caller);
    }

    // Throw stopped.
    void wait(arrival_token t, std::source_location caller = std::source_location::current()) {
        if (!core_.is_over(t.phase)) await(async_wait(t), caller);
    }
    void arrive_and_wait(std::source_location caller = std::source_location::current()) {
        wait(arrive(1, caller), caller);
    }

    detail::barrier_operation async_wait(arrival_token t) noexcept {
        return detail::barrier_operation(core_, t.phase);
    }
    // The caller has arrived when this function returns, before the operation is awaited.
    detail::barrier_operation async_arrive_and_wait(
        std::source_location caller = std::source_location::current()) {
        return async_wait(arrive(1, caller));
    }

private:
    detail::barrier_core::phase enter(std::size_t n, std::size_t leave,
                                      std::source_location caller) {
        const auto a = core_.arrive(n, leave, caller);
        if (a.last) {
            complete_();
            core_.complete();
        }
        return a.in;
    }

    detail::barrier_core core_;
    [[no_unique_address]] Completion complete_;
};

}  // namespace weft
