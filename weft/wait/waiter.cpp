#include "weft/wait/waiter.hpp"

#include <algorithm>
#include <exception>

namespace weft {

bool waiter::admit(bool reports_stop) noexcept {
    if (!reports_stop && (!WEFT_EXCEPTIONS || std::uncaught_exceptions() != 0)) {
        stoppable_ = false;
        return true;
    }
    reason_ = of != nullptr ? of->pending_stop() : stop_reason::none;
    return reason_ == stop_reason::none || !state_.claim(wait_status::stopped);
}

void waiter::engage(time_point until) noexcept {
    const bool bounded = of != nullptr && stoppable_ && of->shields == 0;
    const time_point scope = bounded ? of->deadline : never;
    of_scope_ = scope < until;
    engaged_ = true;
    if (of != nullptr) join_flow(of->waiting);
    if (const time_point first = std::min(until, scope); first != never) {
        timer_.deadline = first;
        timer_.fire = on_deadline;
        timer_.owner = this;
        home_->arm(timer_);
    }
}

wait_status waiter::conclude() noexcept {
    if (!engaged_) return state_.is_pending() ? wait_status::woken : state_.status();
    if (timer_.armed) home_->disarm(timer_);
    if (of != nullptr) leave_flow();
    engaged_ = false;
    return state_.status();
}

// In front of what `at` points to.
void waiter::join_flow(waiter*& at) noexcept {
    outer_ = at;
    link_ = &at;
    if (outer_ != nullptr) outer_->link_ = &outer_;
    at = this;  // F1
}

// Mostly it is the innermost. It is not where the flow has begun a coroutine, did not wait for it,
// and they now wait side by side.
void waiter::leave_flow() noexcept {
    *link_ = outer_;  // F1
    if (outer_ != nullptr) outer_->link_ = link_;
}

wait_status waiter::park(time_point until) {
    engage(until);
    of->kind->suspend(*of);
    return conclude();
}

void waiter::park_outer() {
    what_ = "what it awaits";
    stoppable_ = false;
    engaged_ = true;
    waiter** at = &of->waiting;
    while (*at != nullptr) at = &(*at)->outer_;
    join_flow(*at);
    of->kind->suspend(*of);
    conclude();
}

void waiter::on_deadline(timer_node& t) noexcept {
    waiter& self = *static_cast<deadline_timer&>(t).owner;
    if (self.of_scope_)
        self.stop(stop_reason::deadline);
    else
        self.end_early(wait_status::timed_out, stop_reason::none);
}

void waiter::stop(stop_reason reason) noexcept {
    if (!stoppable_) return;
    if (interrupt_ == nullptr) {
        end_early(wait_status::stopped, reason);
    } else if (reason_ == stop_reason::none) {
        reason_ = reason;
        interrupt_(*this, reason);
    }
}

void waiter::end_early(wait_status how, stop_reason why) noexcept {
    if (!state_.claim(how)) return;  // it has ended, and why stays what it is
    reason_ = why;
    withdraw_(*this);
    wake();  // W1
}

// The frame is destroyed while it waits.
void waiter::abandon() noexcept {
    if (!state_.claim(wait_status::stopped)) home_->forget(*this);
    if (withdraw_ != nullptr) withdraw_(*this);  // W3: a select stands in other queues still
    conclude();
}

}  // namespace weft
