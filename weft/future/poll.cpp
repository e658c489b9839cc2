#include "weft/future/detail/poll.hpp"

namespace weft::detail {

poll_core::poll_core(future_core& c, future_core& source, const poll_manner& m) noexcept
    : calls(c), up(&source), how(m) {
    listen.notify = [](listener& l) noexcept {
        static_cast<notified_by_up&>(l).owner->calls.prompt(multi_source_core::notified_cause);
    };
    listen.owner = this;
    timer.fire = [](timer_node& t) noexcept {
        static_cast<timing&>(t).owner->calls.prompt(multi_source_core::event_cause);
    };
    timer.fires_at_end = true;  // the executor drops the posted turn: dispose() ends the future
    timer.owner = this;
    node.owner = &calls;
    if (how.event != nullptr) how.event->keep();
}

poll_core::~poll_core() {
    if (how.event != nullptr) how.event->release();
    context_node::release(context);
}

poll_core::step poll_core::next_step() noexcept {
    const unsigned causes = calls.take().causes;
    if (calls.over) return step::last;
    future_core& c = calls.core;
    const stop_reason asked = c.stops.asked();
    if (up != nullptr) {
        if ((causes & multi_source_core::notified_cause) != 0) return step::take_value;
        if (asked != stop_reason::none) request_stop(*up, asked);
        return step::nothing;
    }
    if (asked != stop_reason::none) {
        c.put_stopped(asked);
        return step::end;
    }
    return prepare(false) ? step::ask : c.has_outcome() ? step::end : step::nothing;
}

// From here on a stop goes to the fiber, if the function waits, or is found before the next call of
// the function.
bool poll_core::prepare(bool first) noexcept {
    future_core& c = calls.core;
    const time_point present = first ? c.home->now() : time_point();
    const time_point begin = first ? how.first.deadline_from(present) : present;
    const bool waits = begin > present;
    if (!waits && c.manner != manner::plain) {
        c.stops.close();
        c.manner = manner::plain;
    }
    // The turn may also be due to a stop.
    if (const stop_reason asked = c.stops.asked(); asked != stop_reason::none) {
        c.put_stopped(asked);
        return false;
    }
    if (waits) {
        arm(begin);
        return false;
    }
    if (how.event != nullptr && !how.event->look(seen_count)) {
        c.put_error(errc::closed);
        return false;
    }
    return true;
}

void poll_core::arm(time_point t) noexcept {
    if (t == never) return;
    timer.deadline = t;
    calls.core.home->arm(timer);
}

bool poll_core::waits_again() noexcept {
    future_core& c = calls.core;
    if (c.manner == manner::in_fiber) {
        c.stops.close();
        c.manner = manner::plain;
    }
    if (how.count != 0 && --how.count == 0) {
        c.put_error(std::make_error_code(std::errc::resource_unavailable_try_again));
        return false;
    }
    if (const stop_reason asked = c.stops.asked(); asked != stop_reason::none) {
        c.put_stopped(asked);
        return false;
    }
    if (how.event == nullptr && !is_timed()) {
        if (c.home->try_continue_inline()) return true;
        c.home->defer(c.handle(), nullptr);
        return false;
    }
    if (is_timed())
        arm(after(c.home->now(), how.interval));
    else if (!how.event->enlist(node, seen_count))
        calls.prompt(multi_source_core::event_cause);
    if (calls.open() != stop_reason::none) calls.prompt(multi_source_core::stop_cause);
    return false;
}

void poll_core::cancel() noexcept {
    if (timer.armed) calls.core.home->disarm(timer);
    if (how.event != nullptr) how.event->cancel(node);
}

}  // namespace weft::detail
