#include "weft/wait/flow.hpp"

#include <atomic>

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
    if (to.is_at(current_executor())) to.deliver_stop();  // else it was seen there: F4
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
    executor* at = present_home();
    if (at == nullptr) return true;  // whoever starts it delivers
    if (at->is_here()) {
        deliver_stop();
    } else {
        kind->retain(*this);
        at->post(message.node);
    }
    return true;
}

// F4: acquire and release, so that of this and the count in move_to the second sees what was
// written before the first: the stop, or the new home.
executor* flow::present_home() noexcept {
    moves.fetch_add(0, std::memory_order_acq_rel);
    return std::atomic_ref<executor*>(home).load(std::memory_order_relaxed);  // see above
}

void flow::move_to(executor* other) noexcept {
    // Release: pairs with is_at.
    std::atomic_ref<executor*>(home).store(other, std::memory_order_release);
    moves.fetch_add(1, std::memory_order_acq_rel);  // F4
}

bool flow::is_at(const executor* e) noexcept {
    // Acquire: pairs with move_to.
    return std::atomic_ref<executor*>(home).load(std::memory_order_acquire) == e;
}

stop_reason flow::pending_stop_slowly() const noexcept {
    if (shields != 0) return stop_reason::none;
    if (stop.stop_requested()) return stop.reason();
    if (deadline != never && deadline <= home->now()) return stop_reason::deadline;
    return stop_reason::none;
}

void flow::deliver_stop() noexcept {
    attention |= stop_call;  // F3
    if (shields != 0) return;
    for (waiter* w = waiting; w != nullptr; w = w->outer_) w->stop(stop.reason());
}

}  // namespace weft
