#include "weft/manager/detail/manager_core.hpp"

#include <algorithm>

#include "weft/base/errc.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/shield.hpp"

namespace weft::detail {
namespace {

// The destructor's patience with tasks whose executors do not seem to run.
constexpr duration destruction_patience = std::chrono::seconds(1);

// The number of tasks that are ended between two checks of the deadlines.
constexpr std::size_t expiry_batch = 64;

// A timer's call ends this many tasks, and then lets other flows run.
constexpr std::size_t timer_budget = 256;

}  // namespace

manager_core::manager_core(const manager_options& o)
    : options_(o),
      base_(o.timers != nullptr ? o.timers->now() : o.start),
      present_(base_.time_since_epoch().count()),
      table_(o.shard_count) {
    WEFT_ASSERT(o.resolution > duration::zero(),
                "a task_manager whose deadlines have no resolution");
    if (o.timers != nullptr) timer_ = new manager_timer(*o.timers, on_time, this);
}

manager_core::~manager_core() {
    live_.close();
    table_.for_each([this](managed_task& t) { kill(t, stop_reason::shutdown); });
    if (!live_.is_empty()) {
        const shield from_our_own_stop;
        const time_point patience = after(weft::now(), destruction_patience);
        if (!await(async_wait_until_idle(patience)) && !live_.is_empty())
            fail("a task_manager is destroyed while executors that do not run have tasks of it", {},
                 unknown_caller);
    }
    live_.alone();
    if (timer_ != nullptr) timer_->release();
}

// -- live tasks --------------------------------------------------------------------------------

std::error_code manager_core::admit() noexcept {
    switch (live_.admit(options_.max_live_count)) {
        case live_count::verdict::admitted:
            return {};
        case live_count::verdict::closed:
            return errc::closed;
        case live_count::verdict::full:
            break;
    }
    refused_.fetch_add(1, std::memory_order_relaxed);  // it is only counted
    return manager_errc::too_many_tasks;
}

result<std::uint64_t> manager_core::enter(managed_task& t, duration timeout) {
    const weft::tick end = timeout != no_timeout ? tick_of(after(now(), timeout)) : tick_never;
    result<std::uint64_t> id = table_.insert(t, end, live_);
    if (id) need_timer(end);
    return id;
}

void manager_core::leave(managed_task& t) noexcept {
    const bool timed = table_.remove(t, t.state.cause());
    if (timed && timer_ != nullptr) rest_timer();  // it may have been the last that needs the timer
    live_.leave();
}

// A timer that stays armed keeps its loop from ending.
void manager_core::rest_timer() noexcept {
    if (table_.next() != tick_never) return;
    timer_->rest();
    // Another thread may have set a deadline between the two.
    if (const weft::tick n = table_.next(); n != tick_never) timer_->need(time_of(n));
}

scheduler& manager_core::scheduler_for(scheduler_ref asked, std::source_location caller) const {
    if (asked) return *asked;
    if (options_.on) return *options_.on;
    executor* const here = current_executor();
    if (here == nullptr)
        fail("a task is spawned outside of any executor: name one, {.on = loop}", {}, caller);
    return here->default_scheduler();
}

// -- by id --------------------------------------------------------------------------------------

std::error_code manager_core::start(std::uint64_t id) {
    const managed_ref t = find(id);
    if (!t) return manager_errc::no_such_task;
    if (!t->state.start())
        return t->state.is_decided() ? manager_errc::already_stopping
                                     : manager_errc::already_started;
    t->kind->start(*t, false);
    return {};
}

std::error_code manager_core::cancel(std::uint64_t id, stop_reason reason) noexcept {
    const managed_ref t = find(id);
    return t ? cancel(*t, reason) : manager_errc::no_such_task;
}

std::error_code manager_core::cancel(managed_task& t, stop_reason reason) noexcept {
    if (!t.end(managed_status::cancelled, reason)) return manager_errc::already_stopping;
    table_.close(t.key);
    return {};
}

std::error_code manager_core::kill(std::uint64_t id, stop_reason reason) noexcept {
    const managed_ref t = find(id);
    return t ? kill(*t, reason) : manager_errc::no_such_task;
}

// A task that is ending already is given no more time.
std::error_code manager_core::kill(managed_task& t, stop_reason reason) noexcept {
    if (t.end(managed_status::killed, reason, true)) {
        table_.close(t.key);
        return {};
    }
    t.force();
    return manager_errc::already_stopping;
}

// -- time ---------------------------------------------------------------------------------------

weft::tick manager_core::tick_of(time_point t) const noexcept {
    if (t == never) return tick_never;
    if (t <= base_) return 0;
    const auto length = static_cast<weft::tick>(options_.resolution.count());
    const auto distance = static_cast<weft::tick>((t - base_).count());
    return distance / length + (distance % length != 0 ? 1 : 0);
}

weft::tick manager_core::tick_at(time_point t) const noexcept {
    if (t <= base_) return 0;
    return static_cast<weft::tick>((t - base_).count() / options_.resolution.count());
}

time_point manager_core::time_of(weft::tick n) const noexcept {
    const auto length = static_cast<weft::tick>(options_.resolution.count());
    const auto most = static_cast<weft::tick>((never - base_).count());
    return n >= most / length ? never : base_ + duration(static_cast<duration::rep>(n * length));
}

time_point manager_core::now() const noexcept {
    if (timer_ != nullptr) return timer_->now();
    return time_point(duration(present_.load(std::memory_order_relaxed)));  // it only grows
}

std::error_code manager_core::set_deadline(std::uint64_t id, time_point t) noexcept {
    const weft::tick deadline = tick_of(t);
    if (!table_.set_deadline(id, deadline)) return manager_errc::no_such_task;
    need_timer(deadline);
    if (timer_ != nullptr) rest_timer();  // the task may have ended before the timer was asked
    return {};
}

time_point manager_core::deadline_of(std::uint64_t id) noexcept {
    return time_of(table_.deadline_of(id));
}

std::size_t manager_core::tick(time_point t, std::size_t budget) noexcept {
    // Relaxed, all: a clock, which orders nothing.
    auto seen = present_.load(std::memory_order_relaxed);
    const auto wanted = t.time_since_epoch().count();
    // Relaxed: as above. A caller that goes back does not set this clock back.
    while (seen < wanted &&
           !present_.compare_exchange_weak(seen, wanted, std::memory_order_relaxed)) {
    }
    const weft::tick now = tick_at(t);
    std::size_t ended = 0;
    while (ended < budget) {
        managed_ref due[expiry_batch];
        const std::size_t n = table_.take_due(now, due, std::min(budget - ended, expiry_batch));
        if (n == 0) break;
        for (std::size_t i = 0; i < n; ++i) expire(*due[i]);
        ended += n;
    }
    return ended;
}

// The first deadline requests a stop, the second kills; without grace the first one kills.
void manager_core::expire(managed_task& t) noexcept {
    const bool at_once = options_.grace <= duration::zero();
    if (!t.end(managed_status::timed_out, stop_reason::deadline, at_once))
        t.force();
    else if (!at_once)
        set_deadline(t.key, after(now(), options_.grace));
    table_.close(t.key);
}

time_point manager_core::next_deadline() const noexcept { return time_of(table_.next()); }

time_point manager_core::on_time(void* self) noexcept {
    auto& core = *static_cast<manager_core*>(self);
    core.tick(core.now(), timer_budget);
    return core.next_deadline();
}

// -- the end ------------------------------------------------------------------------------------

void manager_core::stop_all(stop_reason reason, duration grace) noexcept {
    live_.close();
    const bool at_once = grace <= duration::zero();
    const weft::tick last = at_once ? tick_never : tick_of(after(now(), grace));
    table_.for_each([&](managed_task& t) {
        if (at_once) {
            kill(t, reason);
        } else {
            cancel(t, reason);
            if (last != tick_never) table_.set_deadline(t.key, last, true);
        }
    });
    need_timer(last);
    if (timer_ != nullptr) rest_timer();  // there may be no task that needs it
}

manager_stats manager_core::stats() const noexcept {
    const task_table::census c = table_.count();
    const auto ended = [&](managed_status s) { return c.ended[static_cast<std::size_t>(s)]; };
    return {
        .live_count = live_.count(),
        .deadline_count = c.deadlines,
        .done_count = ended(managed_status::done),
        .cancelled_count = ended(managed_status::cancelled),
        .killed_count = ended(managed_status::killed),
        .timed_out_count = ended(managed_status::timed_out),
        .refused_count = refused_.load(std::memory_order_relaxed),
        .awaited_reply_count = replies_.count(),
        .late_reply_count = replies_.late_count(),
        .type_mismatch_count = misfits_.load(std::memory_order_relaxed) + replies_.misfit_count()};
}

bool manager_core::idle_operation::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the end of all tasks of a manager", core_, this, [](waiter& gone) noexcept {
        auto& self = gone.operation<idle_operation>();
        self.core_->live_.cancel(self.node_);
    });
    w.mark_external();
    return core_->live_.enlist(node_);
}

result<void> manager_core::idle_operation::take(const waiter*, wait_status how) const {
    if (how == wait_status::stopped) return failure(std::errc::operation_canceled);
    if (how == wait_status::timed_out) return failure(std::errc::timed_out);
    return {};
}

}  // namespace weft::detail
