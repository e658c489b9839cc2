// loop_end: how a loop ends what is live in it.
//
// Design: all flows are asked to stop and are run on; what does not end on request is ended by
// unwinding it, the youngest first. A flow that is being ended may wait: then the loop runs on top
// of that flow's stack.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "weft/base/detail/spin_wait.hpp"
#include "weft/sched/detail/wheel_timer.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {

void loop::kill_all() noexcept {
    const detail::restore_on_exit put_back;
    detail::this_thread_runs() = {nullptr, this};
    take_posted();
    request_stop();
    run_on(never);
    // The rest does not end on request. The youngest first: the flow that started it may wait for
    // it in a destructor, which cannot be unwound.
    patience_ = after(now(), deadlock_patience);
    while (flow* f = living_.youngest()) {
        end_or_await(*f);
        run_on(patience_);
    }
    drop_ready();  // it may own timers
    end_timers();
    drop_ready();
    // The thread that posted last, or called stop(), may be about to wake the driver. Acquire,
    // both: pairs with post() and tell().
    for (detail::spin_wait w; wakes_.load(std::memory_order_acquire) != posted_.owed_count() ||
                              telling_count_.load(std::memory_order_acquire) != 0;)
        w.once();
}

// A flow that has forwarded its stop to another executor, or waits for flows there, or is about to
// be woken by another thread, is given some time; in the last case also while other turns are
// ready. Any other flow here waits under a shield, or has swallowed the stop, and is ended.
void loop::end_or_await(flow& f) noexcept {
    const waiter* const w = f.waiting;
    const bool is_claimed = w != nullptr && w->is_any_claimed();
    const bool may_be_answered =
        is_claimed || (w != nullptr && (w->is_any_asked() || w->awaits_others()));
    if (may_be_answered && now() < patience_ &&
        (ready() ? is_claimed : now_on().wait(std::min(patience_, next_due()))))
        return;
    const bool before = std::exchange(ends_one_, true);
    f.kind->end(f);
    ends_one_ = before;
}

// Runs on top of the stack of a flow that is being ended. It proceeds as in kill_all(), only
// deeper; flows that are being ended further up the stack stay where they are.
bool loop::run_beside(bool may_end) noexcept {
    if (!ends_one_) return false;
    const detail::restore_on_exit put_back;
    detail::this_thread_runs() = {nullptr, this};
    if (may_end) {
        flow* const f = living_.youngest_to_end();
        if (f == nullptr) return false;
        end_or_await(*f);
    } else {
        ends_one_ = false;  // what a turn ends is on top of that turn's stack
        run_on(patience_);
        ends_one_ = true;
    }
    return true;
}

// A bounded number of turns for each live flow, so that a flow that yields for ever is ended too.
// At least one iteration, for the effects of an end.
void loop::run_on(time_point until) noexcept {
    std::size_t left = last_rounds * (1 + (living_.count() + ready_.count()) / round_turns);
    while (left-- != 0 && run_round() != 0 && now() < until) {
    }
}

// Timers with fires_at_end fire, ahead of their deadlines. The others stay: their owners disarm
// them, or the destructor reports that they no longer can.
void loop::end_timers() noexcept {
    if (timers_.empty()) return;
    timers_.advance(tick_never - 1, [this](wheel_node& n) noexcept {
        timer_node& t = *static_cast<detail::wheel_timer&>(n).timer;
        if (!t.fires_at_end) return timers_.add(n, timers_.now());
        static_cast<detail::wheel_timer&>(n).~wheel_timer();
        t.armed = false;
        t.fire(t);
    });
}

// Destroys what gets no turn any more: functions that post themselves again and again.
void loop::drop_ready() noexcept {
    for (;;) {
        take_posted();
        if (const entry e = std::exchange(slot_, {}); e.handle != nullptr) defer(e.handle, e.of);
        if (ready_.empty()) return;
        std::coroutine_handle<>(ready_[0].handle)
            .destroy();  // in place: cancel_post() must find it
        ready_.pop_front();
    }
}

}  // namespace weft
