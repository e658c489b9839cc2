#include "weft/wait/waiter.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace weft {

bool waiter::may_begin_slowly(bool reports_stop, bool on_own_stack) noexcept {
    // uncaught_exceptions() counts those of the stack that this is called on.
    if (!reports_stop && (!WEFT_EXCEPTIONS || (on_own_stack && std::uncaught_exceptions() != 0))) {
        stoppable_ = false;
        return true;
    }
    reason_ = of != nullptr ? of->pending_stop() : stop_reason::none;
    return reason_ == stop_reason::none || !state_.claim(wait_status::stopped);
}

// Arms a timer for the earlier of the wait's own deadline and the flow's.
void waiter::set_timer(time_point until) noexcept {
    const time_point scope = of != nullptr && stoppable_ ? of->deadline : never;
    const bool is_kept_off = scope != never && of->shields != 0;
    if (is_kept_off) keep_deadline_off();
    const time_point bound = is_kept_off ? never : scope;
    if (until == never && bound == never) return;
    std::construct_at(&timer_);
    timed_ = true;
    timer_.fire = on_deadline;
    timer_.owner = this;
    timer_.own = until;
    arm_timer(std::min(until, bound), bound < until);
}

void waiter::arm_timer(time_point at, bool of_scope) noexcept {
    of_scope_ = of_scope;
    timer_.deadline = at;
    home_->arm(timer_);
}

void waiter::keep_deadline_off() noexcept {
    kept_off_ = true;
    of->pending_flags |= flow::deadline_kept_off;
}

void waiter::meet_deadline() noexcept {
    if (!kept_off_ || !stoppable_) return;
    kept_off_ = false;
    const bool has_come = overdue_ || (of->deadline != never && of->deadline <= home_->now());
    overdue_ = false;
    if (has_come) return stop(stop_reason::deadline);
    if (!is_armed()) return set_timer(never);
    if (timer_.deadline <= of->deadline) return;
    home_->disarm(timer_);
    arm_timer(of->deadline, true);
}

// Sets the timer, and delivers a stop that is pending already.
void waiter::arm(time_point until) noexcept {
    set_timer(until);
    // A stop that came while the operation was started found no wait to end.
    if (of == nullptr || !may_be_stopped()) return;
    const stop_reason r = of->known_stop();
    if (r == stop_reason::none) return;
    const bool before = of->wait_begins;
    of->wait_begins = true;
    stop(r);
    of->wait_begins = before;
}

void waiter::park_outer() {
    what_ = "what it awaits";
    stoppable_ = false;
    engaged_ = true;
    waiter** at = &of->waiting;
    while (*at != nullptr) at = &(*at)->outer_;
    join_flow(*at);
    of->kind->suspend(*of);
    end_wait();
}

void waiter::on_deadline(timer_node& t) noexcept {
    waiter& self = *static_cast<deadline_timer&>(t).owner;
    if (self.of_scope_ && self.of->shields != 0) {
        self.keep_deadline_off();
        self.overdue_ = true;
        if (self.timer_.own != never) self.arm_timer(self.timer_.own, false);
    } else if (self.of_scope_)
        self.stop(stop_reason::deadline);
    else if (self.interrupt_ == nullptr)
        self.end_early(wait_status::timed_out, stop_reason::none);
    else if (!std::exchange(self.late_, true) && self.state_.is_pending())
        self.interrupt_(self, stop_reason::none);
}

bool waiter::rearm(time_point until, bool reports_stop) noexcept {
    state_.rearm();
    if (asked_) [[unlikely]] {
        asked_ = false;
        reason_ = stop_reason::none;
        return !state_.claim(wait_status::stopped);
    }
    late_ = false;
    reason_ =
        stop_reason::none;  // it did not end the wait; if the stop is in force still, see below
    if (of == nullptr || of->pending_flags == 0) {
        if (until == never && !is_armed()) [[likely]]
            return true;
    } else if (stoppable_ &&
               !may_begin_slowly(reports_stop, false)) {  // the status stays as it was
        return false;
    }
    // A timer that has fired meanwhile found the wait ended, and is armed again.
    if (is_armed() && timer_.deadline > until) home_->disarm(timer_);
    // A stop that another thread has requested since is not delivered here: it would end the wait
    // before the waiter is in its queue again. Its message, which is on the way, finds it there.
    if (!is_armed()) set_timer(until);
    return true;
}

void waiter::stop(stop_reason reason) noexcept {
    if (!stoppable_) return;
    // Whichever way it ends, or is asked to end: if it goes on, the request was for it.
    if (reason == stop_reason::none) asked_ = true;
    if (interrupt_ == nullptr) {
        end_early(wait_status::stopped, reason);
    } else if (reason_ == stop_reason::none) {
        reason_ = reason;
        interrupt_(*this, reason);
    }
}

void waiter::end_early(wait_status how, stop_reason why) noexcept {
    if (!state_.claim(how)) return;  // it has ended, and its reason stays
    reason_ = why;
    cancel_(*this);
    wake();  // W1
}

// The frame is destroyed while it waits.
void waiter::cancel_on_destroy() noexcept {
    if (!state_.claim(wait_status::stopped) && home_ != nullptr) home_->cancel_post(*this);
    if (cancel_ != nullptr) cancel_(*this);  // W3: a select is still in other queues
    end_wait();
}

}  // namespace weft
