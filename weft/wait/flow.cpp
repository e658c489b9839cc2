#include "weft/wait/flow.hpp"

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/wait/detail/nursery_block.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/waiter.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::running_flow, weft_tls_running_flow);

// The number of nested deliver_stop calls on this thread.
WEFT_DECLARE_THREAD_LOCAL(unsigned, weft_tls_stops_delivered, stops_being_delivered);
WEFT_DEFINE_THREAD_LOCAL(unsigned, weft_tls_stops_delivered);

namespace weft {
namespace detail {

void throw_stopped(stop_reason reason) {
#if WEFT_EXCEPTIONS
    if (reason == stop_reason::sibling_failed) throw_failure_of_block();
    throw stopped{reason};
#else
    static_cast<void>(reason);
    fail("a wait that returns nothing was stopped", {}, unknown_caller);
#endif
}

void stop_message::arrived(stop_message* m) noexcept {
    flow& to = *static_cast<flow*>(m);
    // Acquire and release: pairs with send, both ways: a sender that finds the message on its way
    // leaves its reason for this delivery to see.
    to.called.exchange(false, std::memory_order_acq_rel);
    if (to.is_at(current_executor()))
        to.deliver_stop();
    else
        to.call();  // stops from before the move were seen there, F4, but not later ones
    to.kind->release(to);
}

// Called when its executor ends.
void stop_message::dropped(stop_message* m) noexcept {
    flow& to = *static_cast<flow*>(m);
    // Release: pairs with send, which posts it again. The reason is not read: the message is sent
    // on, or the flow ends here.
    to.called.exchange(false, std::memory_order_release);
    if (!to.is_at(current_executor())) to.call();
    to.kind->release(to);
}

stop_message::stop_message() noexcept : receive(arrived), drop(dropped) {
    message.handle = std::coroutine_handle<>::from_address(this);
}

}  // namespace detail

bool flow::request_stop(stop_reason reason) noexcept {
    if (!stop.request_stop(reason)) return false;
    bool here = false;
    {
        const visit v(*this);
        executor* const at = v.home();
        if (at == nullptr) return true;  // delivered where it is started
        // A wait that forwards its stop to flows whose waits do the same takes stack for each
        // level.
        constexpr unsigned deepest = 8;
        here = at->running_in_this_thread() && detail::stops_being_delivered() != deepest;
        if (!here) send(*at);
    }
    if (here) deliver_stop();
    return true;
}

// Acquire: pairs with the release of the fetch_add in migrate_to, so that the new home is seen. F4
flow::visit::visit(flow& f) noexcept
    : flow_(f),
      home_((f.visitors.fetch_add(1, std::memory_order_acquire),
             atomic_ref<executor*>(f.home).load(std::memory_order_relaxed))) {}
// Release: pairs with migrate_to, which then sees what was requested before the visit, F4, and may
// let the executor end.
flow::visit::~visit() { flow_.visitors.fetch_sub(1, std::memory_order_release); }

void flow::send(executor& at) noexcept {
    // Acquire and release: pairs with the exchange at the message's arrival.
    if (called.exchange(true, std::memory_order_acq_rel)) return;
    kind->retain(*this);
    at.post(message);
}

void flow::call() noexcept {
    const visit v(*this);
    if (v.home() != nullptr) send(*v.home());  // else seen where it gets its home
}

bool flow::post_home(runnable& r) noexcept {
    const visit v(*this);
    if (v.home() != nullptr) v.home()->post(r);
    return v.home() != nullptr;
}

void flow::migrate_to(executor* other) noexcept {
    // Release: pairs with is_at.
    atomic_ref<executor*>(home).store(other, std::memory_order_release);
    // Adds nothing, and yet takes its place in the order of the visitors' changes. F4
    unsigned present = visitors.fetch_add(0, std::memory_order_acq_rel);
    for (detail::spin_wait w; present != 0;) [[unlikely]] {  // F5
        w.once();
        present = visitors.load(std::memory_order_acquire);  // pairs with ~visit
    }
}

bool flow::is_at(const executor* e) noexcept {
    // Acquire: pairs with migrate_to.
    return atomic_ref<executor*>(home).load(std::memory_order_acquire) == e;
}

void flow::detach_from_executor() noexcept {
    home->deregister_flow(*this);
    if (waiting != nullptr) waiting->leave();  // W4
    migrate_to(nullptr);
}

void flow::attach_to_executor() noexcept {
    executor& at = *current_executor();
    if (home == nullptr) migrate_to(&at);
    if (waiting != nullptr) waiting->arrive(at);
    at.register_flow(*this);
    if (requested_stop() != stop_reason::none) deliver_stop();  // a delivery may have missed it
}

stop_reason flow::pending_stop_slowly() const noexcept {
    if (shields != 0) return stop_reason::none;
    if (const stop_reason r = known_stop(); r != stop_reason::none) return r;
    if (deadline != never && deadline <= home->now()) return stop_reason::deadline;
    return stop_reason::none;
}

waiter* flow::own_wait() const noexcept {
    for (waiter* w = waiting; w != nullptr; w = w->outer_)
        if (w->resumes(handle)) return w;
    return nullptr;
}

void flow::deliver_kept_off() noexcept {
    if ((pending_flags & deadline_kept_off) != 0) {
        pending_flags &= static_cast<std::uint8_t>(~deadline_kept_off);
        for (waiter* w = waiting; w != nullptr; w = w->outer_) w->meet_deadline();
    }
    if ((pending_flags & stop_pending) != 0) deliver_stop();
}

void flow::deliver_stop() noexcept {
    const stop_reason why = requested_stop();
    if (why == stop_reason::none) return;  // the reason was a block that has ended since
    pending_flags |= stop_pending;         // F3
    if (shields != 0) return;
    ++detail::stops_being_delivered();
    for (waiter* w = waiting; w != nullptr; w = w->outer_) w->stop(why);
    --detail::stops_being_delivered();
}

}  // namespace weft
