#include "weft/wait/flow.hpp"

#include <atomic>
#include <thread>

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
    moves.fetch_add(asked, std::memory_order_relaxed);  // F5: present_home() orders it
    executor* const at = present_home();
    // Whoever starts it delivers; and a wait that hands its stop on to flows whose waits do so too
    // takes stack for each.
    constexpr unsigned deepest = 8;
    const bool posts =
        at != nullptr && (!at->is_here() || detail::stops_being_delivered() == deepest);
    if (posts) {
        kind->retain(*this);
        at->post(message);
    }
    // Release: pairs with move_to, which may let the executor end.
    moves.fetch_sub(asked, std::memory_order_release);
    if (at != nullptr && !posts) deliver_stop();
    return true;
}

// F4: acquire and release, so that of this and the count in move_to the second sees what was
// written before the first: the stop, or the new home.
executor* flow::present_home() noexcept {
    moves.fetch_add(0, std::memory_order_acq_rel);
    return std::atomic_ref<executor*>(home).load(std::memory_order_relaxed);  // see above
}

bool flow::post_home(runnable& r) noexcept {
    moves.fetch_add(asked, std::memory_order_relaxed);  // F5: present_home() orders it
    executor* const at = present_home();
    if (at != nullptr) at->post(r);
    // Release: pairs with move_to, which may let the executor end.
    moves.fetch_sub(asked, std::memory_order_release);
    return at != nullptr;
}

void flow::move_to(executor* other) noexcept {
    // Release: pairs with is_at.
    std::atomic_ref<executor*>(home).store(other, std::memory_order_release);
    unsigned before = moves.fetch_add(one_move, std::memory_order_acq_rel);  // F4
    while ((before & asked) != 0) [[unlikely]] {                             // F5
        std::this_thread::yield();
        before = moves.load(std::memory_order_acquire);  // pairs with request_stop
    }
}

bool flow::is_at(const executor* e) noexcept {
    // Acquire: pairs with move_to.
    return std::atomic_ref<executor*>(home).load(std::memory_order_acquire) == e;
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
