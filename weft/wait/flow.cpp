#include "weft/wait/flow.hpp"

#include "weft/wait/stopped.hpp"
#include "weft/wait/waiter.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::running_flow, weft_tls_running_flow);

namespace weft {
namespace detail {

void throw_stopped(stop_reason reason) {
#if WEFT_EXCEPTIONS
    throw stopped{reason};
#else
    static_cast<void>(reason);
    fail("a wait that returns nothing was stopped");
#endif
}

namespace {

void receive(frame* f) noexcept {
    flow& to = *static_cast<stop_message*>(f)->to;
    to.deliver_stop();
    to.kind->release(to);
}
void drop(frame* f) noexcept {
    flow& to = *static_cast<stop_message*>(f)->to;
    to.kind->release(to);
}

}  // namespace

stop_message::stop_message(flow& f) noexcept : frame{receive, drop}, to(&f) {
    node.handle = handle();
}

}  // namespace detail

bool flow::request_stop(stop_reason reason) noexcept {
    if (!stop.request_stop(reason)) return false;
    if (home == nullptr) return true;  // whoever starts it delivers
    if (home->is_here()) {
        deliver_stop();
    } else {
        kind->retain(*this);
        home->post(message.node);
    }
    return true;
}

stop_reason flow::pending_stop_slowly() const noexcept {
    if (shields != 0) return stop_reason::none;
    if (stop.stop_requested()) return stop.reason();
    if (deadline != never && deadline <= home->now()) return stop_reason::deadline;
    return stop_reason::none;
}

void flow::deliver_stop() noexcept {
    attention |= stop_call;  // F3
    if (waiting != nullptr && shields == 0) waiting->stop(stop.reason());
}

}  // namespace weft
