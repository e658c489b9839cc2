// timer: calls a function at a time point, or periodically, on an executor's thread.
//
// Design: the object is the right to be called. Destroying it ends that, from any thread, and its
// memory is released after its last use. stop() says whether a call was prevented; stop_and_join()
// also waits for a call that is running.
//
// A periodic timer is called at first + n * period; calls that would have come while the executor
// was busy are left out. The function may stop or destroy its own timer.
//
// Limits: the function must not throw and not block; it runs outside any flow, with the bindings
// (context_local.hpp) in force where the timer was made. The executor outlives the timers that are
// armed on it.
//
//   weft::timer t(loop, 100ms, [] { flush(); });                     // once
//   weft::timer u(loop, 0ms, 1s, [] { report(); });                  // now, and every second
//   if (t.stop()) ...                                                // it will not be called again
//
// Model: test/model/timer_test.cpp
#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <utility>

#include "weft/base/clock.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/base/time_limit.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/executor.hpp"

namespace weft {
namespace detail {

struct timer_core;

// Stores the function. Called on the executor's thread; destroyed on any thread.
struct timer_function {
    virtual ~timer_function() = default;
    virtual void call() noexcept = 0;
};

timer_core* new_timer(executor& on, time_point first, duration period,
                      std::unique_ptr<timer_function> f);
bool stop_timer(timer_core&) noexcept;
void join_timer(timer_core&);
void release_timer(timer_core&) noexcept;

}  // namespace detail

class timer {
public:
    timer() noexcept = default;

    // The first call is after a duration or at a time point, by the clock of the executor. A
    // `period` of zero: once. Throw bad_alloc.
    template <callable_without_arguments F>
    timer(executor& on, time_limit first, F&& f)
        : timer(on, first, duration::zero(), std::forward<F>(f)) {}
    template <class Rep, class Period, callable_without_arguments F>
    timer(executor& on, time_limit first, std::chrono::duration<Rep, Period> period, F&& f)
        : core_(
              detail::new_timer(on, first.deadline_from(on.now()), saturated(period),
                                std::make_unique<function<std::decay_t<F>>>(std::forward<F>(f)))) {}

    timer(timer&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    timer& operator=(timer&& other) noexcept {
        if (this != &other) {
            end();
            core_ = std::exchange(other.core_, nullptr);
        }
        return *this;
    }
    ~timer() { end(); }  // as stop()

    // No further call starts. True if a call that was to come was prevented; false if none was to
    // come, or the last one is running. Any thread.
    bool stop() noexcept { return core_ != nullptr && detail::stop_timer(*core_); }

    // The same, and returns only when no call runs: suspends a fiber, blocks a thread; a stop does
    // not end that wait. When the function itself calls it, it does not wait.
    bool stop_and_join() {
        if (core_ == nullptr) return false;
        const bool prevented = detail::stop_timer(*core_);
        detail::join_timer(*core_);
        return prevented;
    }

private:
    template <class F>
    struct function final : detail::timer_function {
        F f;
        template <class G>
        explicit function(G&& g) : f(std::forward<G>(g)) {}
        void call() noexcept override { detail::invoke(f); }
    };

    void end() noexcept {
        if (core_ == nullptr) return;
        detail::stop_timer(*core_);
        detail::release_timer(*std::exchange(core_, nullptr));
    }

    detail::timer_core* core_ = nullptr;
};

}  // namespace weft
