#include <utility>

#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/sched/detail/pool_core.hpp"
#include "weft/wait/flow.hpp"

namespace weft {

ready_turn pool::core::worker::take(bool busy) noexcept {
    if (busy) {
        // The loop was woken for work that is not its own, and has its own to do.
        stop_searching();
        if (const ready_turn t = take_in_turn(); t.handle != nullptr) return t;
        if (own().is_overloaded() && core_.idle.idle_count() != 0) own().offload_ready();
        return {};
    }
    ready_turn t;
    ++takes_;
    if (std::exchange(fair_next_, false))  // P4
        t = take_in_turn();
    else if (takes_ % fair_takes == 0)
        t = eldest_is_due() ? take_eldest() : take_from_outside();
    if (t.handle == nullptr) t = pop();
    if (t.handle == nullptr) t = take_from_outside();
    if (t.handle == nullptr) return search();
    stop_searching();
    return t;
}

bool pool::core::worker::eldest_is_due() noexcept {
    if (takes_ % clock_takes != 0) return false;
    const time_point now = steady_now();
    if (now < after(eldest_taken_, eldest_period)) return false;
    eldest_taken_ = now;
    return true;
}

ready_turn pool::core::worker::take_from_outside() noexcept {
    const ready_turn t = core_.inbox.pop();
    if (t.handle != nullptr) count(remote_schedule_count);
    return t;
}

// Takes what has waited longest: alternately from outside and from its own deque, so that neither
// hides the other.
ready_turn pool::core::worker::take_in_turn() noexcept {
    outside_first_ = !outside_first_;
    ready_turn t = outside_first_ ? take_from_outside() : take_eldest();
    if (t.handle == nullptr) t = outside_first_ ? take_eldest() : take_from_outside();
    return t;
}

void pool::core::worker::receive(flow& f) noexcept {
    count(offload_count);
    if (push(f.turn)) return;
    core_.inbox.push(f.turn);
    detail::parking::offer(core_.idle, [this](unsigned i) { wake(i); });
}

void pool::core::worker::stop_searching() noexcept {
    if (parking_.end_search([this](unsigned i) { wake(i); })) found_lately_ = true;
}

ready_turn pool::core::worker::search() noexcept {
    if (core_.workers.size() == 1) return {};
    if (!parking_.begin_search()) return {};
    // A worker that found something recently searches for longer: a sleep and a wake cost more.
    const int rounds = found_lately_ ? 64 : 1;
    for (int n = 0; n != rounds; ++n) {
        ready_turn t = steal_one();
        if (t.handle != nullptr)
            count(steal_count);
        else
            t = take_from_outside();
        if (t.handle != nullptr) {
            stop_searching();
            return t;
        }
        for (int i = 0; i != 16; ++i) detail::spin_pause();
    }
    return {};
}

// One pass over all others, from a different start each time, with one fence.
ready_turn pool::core::worker::steal_one() noexcept {
    const auto& all = core_.workers;
    const std::size_t n = all.size();
    bool any = false;
    for (std::size_t i = 0; i != n; ++i) {
        marks_[i] = i == index_ ? detail::steal_mark() : all[i]->mark();
        any |= !marks_[i].empty();
    }
    if (!any) return {};
    detail::asymmetric_fence::heavy();
    random_ = random_ * 1664525u + 1013904223u;
    const std::size_t first = random_ >> 8;
    for (std::size_t i = 0; i != n; ++i) {
        const std::size_t at = (first + i) % n;
        if (marks_[at].empty()) continue;
        if (const ready_turn t = all[at]->steal(marks_[at]); t.handle != nullptr) return t;
    }
    return {};
}

bool pool::core::worker::rest() noexcept {
    found_lately_ = false;
    flow_count.store(own().flow_count(), std::memory_order_relaxed);  // released by announce()
    if (!parking_.begin_sleep([this] { return core_.has_work(); })) return false;  // P2
    count(park_count);
    core_.quiet.worker_rests();
    return true;
}

void pool::core::worker::rested() noexcept { parking_.end_sleep(); }

void pool::core::worker::run() noexcept {
    detail::this_thread_forks() = this;
    while (!core_.leaving.load(std::memory_order_acquire))  // pairs with end()
        static_cast<void>(own().run_once(never));
    core_.all_out.arrive_and_wait();
    own().kill_all();
    core_.all_out.arrive_and_wait();
    own().kill_all();  // for messages sent by the ends of others
    core_.all_out.arrive_and_wait();
    core_.all_out.arrive_and_wait();  // the watchdog has stopped
    drop_loop();                      // P3
    detail::this_thread_forks() = nullptr;
}

// Work that was launched too late to start is destroyed; it was asked to stop, like all.
void pool::core::worker::drop_loop() noexcept {
    for (ready_turn t; (t = pop()).handle != nullptr || (t = core_.inbox.pop()).handle != nullptr;)
        t.handle.destroy();
    loop_.reset();
}

}  // namespace weft
