#include "weft/future/detail/limited.hpp"

namespace weft::detail {

limited_core::limited_core(future_core& c, future_core& source, time_point deadline) noexcept
    : calls(c), up(&source) {
    listen.notify = [](listener& l) noexcept {
        static_cast<notified_by_up&>(l).owner->calls.prompt(multi_source_core::notified_cause);
    };
    listen.owner = this;
    timer.fire = [](timer_node& t) noexcept {
        static_cast<timing&>(t).owner->calls.prompt(multi_source_core::event_cause);
    };
    timer.deadline = deadline;
    timer.fires_at_end = true;  // the executor drops the posted turn: dispose() ends the future
    timer.owner = this;
    node.owner = this;
}

void limited_core::begin(stop_token token) noexcept {
    static_cast<void>(calls.open());  // no stop is requested yet
    // The timer is armed on the core's executor, which may run the turn at once. The reference that
    // is returned to the caller keeps *this until begin() returns.
    if (timer.deadline != never) {
        if (current_executor() == calls.core.home)
            calls.core.home->arm(timer);
        else
            calls.prompt(multi_source_core::event_cause);
    }
    node.attach(token);
    if (!up->word.attach(listen)) calls.prompt(multi_source_core::notified_cause);
}

bool limited_core::look() noexcept {
    const unsigned causes = calls.take().causes;
    if ((causes & multi_source_core::notified_cause) != 0) return true;
    if ((causes & multi_source_core::event_cause) != 0 && !timer.armed && !late) {
        executor& home = *calls.core.home;
        late = timer.deadline <= home.now();
        if (late)
            request_stop(*up, stop_reason::deadline);
        else
            home.arm(timer);
    }
    if (const stop_reason asked = calls.core.stops.asked(); asked != stop_reason::none)
        request_stop(*up, asked);
    return false;
}

void limited_core::cancel() noexcept {
    node.detach();
    if (timer.armed) calls.core.home->disarm(timer);
}

}  // namespace weft::detail
