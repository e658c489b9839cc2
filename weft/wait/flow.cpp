#include "weft/wait/flow.hpp"

#include "weft/base/atomic.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/waiter.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::running_flow, weft_tls_running_flow);

// How many calls of deliver_stop are under way on a thread, each within the one before.
WEFT_DECLARE_THREAD_LOCAL(unsigned, weft_tls_stops_delivered, stops_being_delivered);
WEFT_DEFINE_THREAD_LOCAL(unsigned, weft_tls_stops_delivered);

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

void receive(stop_message* m) noexcept {
    flow& to = *static_cast<flow*>(m);
    if (to.is_at(current_executor())) to.deliver_stop();  // else it was seen there: F4
    to.kind->release(to);
}
void drop(stop_message* m) noexcept {
    flow& to = *static_cast<flow*>(m);
    to.kind->release(to);
}

}  // namespace

stop_message::stop_message() noexcept : receive(detail::receive), drop(detail::drop) {
    message.handle = std::coroutine_handle<>::from_address(this);
}

}  // namespace detail

bool flow::request_stop(stop_reason reason) noexcept {
    if (!stop.request_stop(reason)) return false;
    bool here = false;
    {
        const visit v(*this);
        executor* const at = v.home();
        if (at == nullptr) return true;  // whoever starts it delivers
        // A wait that hands its stop on to flows whose waits do so too takes stack for each.
        constexpr unsigned deepest = 8;
        here = at->is_here() && detail::stops_being_delivered() != deepest;
        if (!here) {
            kind->retain(*this);
            at->post(message);
        }
    }
    if (here) deliver_stop();
    return true;
}

// Acquire and release: of this and the look in move_to the second sees what was written before the
// first: the stop, or the new home. F4
flow::visit::visit(flow& f) noexcept
    : flow_(f),
      home_((f.visitors.fetch_add(1, std::memory_order_acq_rel),
             atomic_ref<executor*>(f.home).load(std::memory_order_relaxed))) {}
// Release: pairs with move_to, which may let the executor end.
flow::visit::~visit() { flow_.visitors.fetch_sub(1, std::memory_order_release); }

bool flow::post_home(runnable& r) noexcept {
    const visit v(*this);
    if (v.home() != nullptr) v.home()->post(r);
    return v.home() != nullptr;
}

void flow::move_to(executor* other) noexcept {
    // Release: pairs with is_at.
    atomic_ref<executor*>(home).store(other, std::memory_order_release);
    // It changes nothing and yet has its place among the visitors' changes. F4
    unsigned present = visitors.fetch_add(0, std::memory_order_acq_rel);
    while (present != 0) [[unlikely]] {  // F5
        spin_yield();
        present = visitors.load(std::memory_order_acquire);  // pairs with ~visit
    }
}

bool flow::is_at(const executor* e) noexcept {
    // Acquire: pairs with move_to.
    return atomic_ref<executor*>(home).load(std::memory_order_acquire) == e;
}

void flow::leave_home() noexcept {
    home->strike_off(*this);
    if (waiting != nullptr) waiting->leave();  // W4
    move_to(nullptr);
}

void flow::settle_here() noexcept {
    executor& at = *current_executor();
    if (home == nullptr) move_to(&at);
    if (waiting != nullptr) waiting->arrive(at);
    at.enroll(*this);
    if (stop.stop_requested()) deliver_stop();  // it may have missed us
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
    ++detail::stops_being_delivered();
    for (waiter* w = waiting; w != nullptr; w = w->outer_) w->stop(stop.reason());
    --detail::stops_being_delivered();
}

}  // namespace weft
