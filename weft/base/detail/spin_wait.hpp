// spin_wait: a wait for another thread that is about to do the awaited step, and has no way to
// announce it.
//
// Design: that thread is mostly within a few instructions of the step, but may be held up for
// seconds, by a callback that takes its time or by a wake that the system refuses and that is tried
// again (refusals.hpp). The waiter therefore yields the processor some times, and then sleeps
// between two checks, ever longer: a wait that lasts costs next to nothing.
//
//   for (spin_wait w; !is_done.load(std::memory_order_acquire); w.once()) {}
//
// Model: none, it has no word; under the checker it is the checker's own spin.
#pragma once

#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

// The thread sleeps, by a call that nothing replaces: also where the call of the C library is
// replaced by one that suspends a fiber. The sleep may end early.
void nap(duration) noexcept;

class spin_wait {
public:
#if WEFT_MODEL
    void once() { spin_yield(); }
#else
    void once() noexcept {
        if (looks_ < most_yields) [[likely]] {
            ++looks_;
            return spin_yield();
        }
        sleep();
    }

private:
    static constexpr unsigned most_yields = 256;
    static constexpr duration shortest = std::chrono::microseconds(50);
    static constexpr duration longest = std::chrono::milliseconds(1);

    WEFT_COLD void sleep() noexcept;

    unsigned looks_ = 0;
    duration next_ = shortest;
#endif
};

}  // namespace weft::detail
