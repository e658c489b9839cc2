#include "weft/manager/manager_core.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "weft/base/errc.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/shield.hpp"

namespace weft::detail {
namespace {

// Of a destructor, for tasks whose executors nobody seems to run.
constexpr duration destruction_patience = std::chrono::seconds(1);

// So many are ended at a time, between two looks at the timers.
constexpr std::size_t expiry_batch = 64;

// A timer's call ends so many, and then lets others have a turn.
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
    closed_.store(true, std::memory_order_relaxed);
    if (!table_.is_empty()) {
        for (const std::uint64_t id : table_.ids()) kill(id, stop_reason::shutdown);
        if (!table_.is_empty()) {
            const shield from_our_own_stop;
            const time_point patience = after(weft::now(), destruction_patience);
            if (!await(async_wait_empty(patience)) && !table_.is_empty())
                fail(
                    "a task_manager is destroyed, and executors that nobody runs have tasks of it");
        }
    }
    if (timer_ != nullptr) timer_->let_go();
    // Acquire: pairs with leave.
    while (watch_.telling.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

// -- who lives ----------------------------------------------------------------------------------

std::error_code manager_core::admit() noexcept {
    if (closed_.load(std::memory_order_relaxed)) return errc::closed;
    if (options_.live_limit == unlimited) return {};
    // Relaxed: it is only counted.
    if (admitted_.fetch_add(1, std::memory_order_relaxed) < options_.live_limit) return {};
    admitted_.fetch_sub(1, std::memory_order_relaxed);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return manager_errc::too_many_tasks;
}

void manager_core::unadmit() noexcept {
    if (options_.live_limit != unlimited) admitted_.fetch_sub(1, std::memory_order_relaxed);
}

result<std::uint64_t> manager_core::enter(managed_task& t, duration timeout) {
    const weft::tick end = timeout < duration::max() ? tick_of(after(now(), timeout)) : tick_never;
    const std::uint64_t id = table_.insert(t, end);
    if (id == 0) return failure(manager_errc::too_many_tasks);
    need_timer(end);
    return id;
}

void manager_core::leave(managed_task& t) noexcept {
    unadmit();
    manager_timer* const timer = timer_;
    if (timer != nullptr) {  // it needs the timer no more, and perhaps nobody does
        table_.set_deadline(t.key, tick_never);
        rest_timer();
    }
    if (!table_.remove(t, t.state.cause(), watch_)) return;
    wait_list woken;
    {
        const std::lock_guard held(empty_);
        empty_.claim_all(woken);
    }
    wait_queue::wake_all(woken);
    watch_.telling.fetch_sub(1, std::memory_order_release);  // pairs with the destructor
}

// A timer that stays armed keeps its loop from ending.
void manager_core::rest_timer() noexcept {
    if (table_.next() != tick_never) return;
    timer_->rest();
    // Somebody may have set one between the two.
    if (const weft::tick n = table_.next(); n != tick_never) timer_->need(time_of(n));
}

launcher& manager_core::launcher_for(launcher* asked, std::source_location place) const {
    if (asked != nullptr) return *asked;
    if (options_.on != nullptr) return *options_.on;
    executor* const here = current_executor();
    if (here == nullptr)
        fail("a task is spawned outside of any executor: name one, {.on = &loop}", {}, place);
    return here->begins_on();
}

// -- by id --------------------------------------------------------------------------------------

std::error_code manager_core::start(std::uint64_t id) {
    const managed_ref t = find(id);
    if (!t) return manager_errc::no_such_task;
    if (!t->state.launch())
        return t->state.is_decided() ? manager_errc::already_ending : manager_errc::already_started;
    t->kind->launch(*t, false);
    return {};
}

std::error_code manager_core::cancel(std::uint64_t id, stop_reason reason) noexcept {
    const managed_ref t = find(id);
    if (!t) return manager_errc::no_such_task;
    if (!t->end(managed_status::cancelled, reason)) return manager_errc::already_ending;
    table_.close(id);
    return {};
}

// One that is ending already, and takes its time, is not given more.
std::error_code manager_core::kill(std::uint64_t id, stop_reason reason) noexcept {
    const managed_ref t = find(id);
    if (!t) return manager_errc::no_such_task;
    if (t->end(managed_status::killed, reason, true)) {
        table_.close(id);
        return {};
    }
    t->force();
    return manager_errc::already_ending;
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
    if (timer_ != nullptr && deadline == tick_never) rest_timer();
    return {};
}

time_point manager_core::deadline_of(std::uint64_t id) noexcept {
    return time_of(table_.deadline_of(id));
}

std::size_t manager_core::tick(time_point t, std::size_t budget) noexcept {
    auto seen = present_.load(std::memory_order_relaxed);
    const auto wanted = t.time_since_epoch().count();
    // Relaxed: a clock, which orders nothing. One that goes back does not take this one with it.
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

// It is asked first, and killed the second time.
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

void manager_core::stop_all(stop_reason reason, duration grace) {
    closed_.store(true, std::memory_order_relaxed);
    const bool at_once = grace <= duration::zero();
    const time_point last = after(now(), grace);
    for (const std::uint64_t id : table_.ids()) {
        if (at_once) {
            kill(id, reason);
        } else {
            cancel(id, reason);
            if (last != never) table_.set_deadline(id, tick_of(last), true);
        }
    }
    if (!at_once) need_timer(tick_of(last));
}

manager_statistics manager_core::statistics() const noexcept {
    const task_table::census c = table_.count();
    const auto ended = [&](managed_status s) { return c.ended[static_cast<std::size_t>(s)]; };
    return {.living = c.living,
            .deadlines = c.deadlines,
            .done = ended(managed_status::done),
            .cancelled = ended(managed_status::cancelled),
            .killed = ended(managed_status::killed),
            .timed_out = ended(managed_status::timed_out),
            .refused = refused_.load(std::memory_order_relaxed),
            .awaited_replies = replies_.count(),
            .late_replies = replies_.late_count(),
            .misfits = misfits_.load(std::memory_order_relaxed) + replies_.misfit_count()};
}

bool manager_core::emptiness::enlist() noexcept {
    {
        const std::lock_guard held(core_->empty_);
        core_->empty_.push_back(node_);
    }
    if (!core_->table_.is_empty()) return true;
    const std::lock_guard held(core_->empty_);
    if (!node_.linked()) return true;  // it was claimed, and will be woken
    core_->empty_.remove(node_);
    return false;
}

bool manager_core::emptiness::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the end of all tasks of a manager", core_, this, [](waiter& gone) noexcept {
        auto& self = gone.operation<emptiness>();
        self.core_->empty_.withdraw(self.node_);
    });
    w.await_outside();
    core_->watch_.awaited.store(true,
                                std::memory_order_relaxed);  // the locks of the shards order it
    return enlist();
}

// One shard was empty; were all?
bool manager_core::emptiness::again(waiter& w) noexcept {
    if (w.status() != wait_status::woken || core_->table_.is_empty()) return true;
    return !w.renew(deadline_, true) || !enlist();
}

result<void> manager_core::emptiness::take(const waiter*, wait_status how) const {
    if (how == wait_status::stopped) return failure(std::errc::operation_canceled);
    if (how == wait_status::timed_out) return failure(std::errc::timed_out);
    return {};
}

}  // namespace weft::detail
