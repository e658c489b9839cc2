#include "weft/sched/loop.hpp"

#include <pthread.h>

#include <algorithm>
#include <memory>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/release_unused.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/sched/detail/fetch_ahead.hpp"
#include "weft/sched/detail/wheel_timer.hpp"
#include "weft/sched/driver_futex.hpp"

namespace weft {
namespace {

constexpr duration tick_length = std::chrono::milliseconds(1);

// How often the process was forked, counted in the child, since its first loop was made.
constinit atomic<unsigned> forks{0};

}  // namespace

[[gnu::weak]] std::unique_ptr<driver> detail::driver_of_a_loop() {
    return std::make_unique<driver_futex>();
}

loop::loop() : loop(detail::driver_of_a_loop()) {}
loop::loop(std::unique_ptr<driver> d)
    : first_driver_(std::move(d)), driver_(first_driver_.get()), epoch_(first_driver_->now()) {}

loop::~loop() {
    WEFT_ASSERT_AT(!running_in_this_thread(), "destruction of a loop by what it runs",
                   unknown_caller);
    if (running_.load(std::memory_order_acquire))  // pairs with ~run_by
        fail("destruction of a loop that another thread runs", {}, unknown_caller);
    kill_all();
    WEFT_ASSERT_AT(timers_.empty(), "destruction of a loop with timers in it", unknown_caller);
}

bool loop::adopt(driver* d) noexcept {
    if (adopted_ != nullptr || !now_on().give_way(d)) return false;
    if (d == nullptr) return true;
    adopted_.reset(d);
    driver_.store(d, std::memory_order_release);  // pairs with now_on()
    return true;
}

// -- what is ready ----------------------------------------------------------------------------

WEFT_ALWAYS_INLINE void loop::put_last(entry e) noexcept {
    if (!ready_.try_push_back(e)) [[unlikely]]
        fail("out of memory: no room for what is ready to run", {}, unknown_caller);
}

void loop::post(runnable& r) noexcept {
    if (!running_in_this_thread()) {
        if (!posted_.push(r)) return;
        now_on().wake();
        wakes_.fetch_add(1, std::memory_order_release);  // pairs with kill_all
        return;
    }
    if (slot_.handle != nullptr) put_last(slot_);
    slot_ = {r.handle, r.of};
}

void loop::post_in_order(runnable& r) noexcept {
    if (running_in_this_thread())
        put_last({r.handle, r.of});
    else
        post(r);
}

void loop::schedule(runnable& r) noexcept {
    if (running_in_this_thread())
        put_last({r.handle, r.of});
    else
        post(r);
}

scheduler& loop::default_scheduler() noexcept {
    return source_ != nullptr ? source_->default_scheduler() : *this;
}

void loop::defer(std::coroutine_handle<> handle, flow* of) noexcept { put_last({handle, of}); }

// Within the iteration, so the loop polls as often as if the caller had been queued. A work source,
// and an observer that counts turns, are not bypassed.
bool loop::try_continue_inline() noexcept {
    if (turns_left_ == 0 || ready() || source_ != nullptr || is_observed_) return false;
    --turns_left_;
    ++turn_count_;
    return true;
}

void loop::cancel_post(runnable& r) noexcept {
    // The thread that claimed it may still be about to post it.
    for (detail::spin_wait w;; w.once()) {
        take_posted();
        if (slot_.handle == r.handle) {
            slot_ = {};
            return;
        }
        // The entry keeps its place, and does nothing there.
        for (std::size_t i = 0; i < ready_.count(); ++i) {
            if (ready_[i].handle != r.handle) continue;
            ready_[i] = {std::noop_coroutine(), nullptr};
            return;
        }
    }
}

// A busy loop checks again, and so spares posters the wake; the last check before a sleep is of the
// other kind (inbox.hpp).
void loop::take_posted() noexcept {
    auto queue = ready() ? posted_.take_and_watch() : posted_.take();
    while (runnable* r = queue.pop_front()) put_last({r->handle, r->of});
}

// The flow that was woken last, if it may run next, or else the first in the ring.
WEFT_ALWAYS_INLINE bool loop::next(entry& e) noexcept {
    if (chooser_ != nullptr) [[unlikely]]
        return next_chosen(e);
    if (slot_.handle != nullptr) {
        if (slot_uses_ < slot_uses_limit || ready_.empty()) {
            ++slot_uses_;
            e = std::exchange(slot_, {});
            return true;
        }
        put_last(std::exchange(slot_, {}));
    }
    slot_uses_ = 0;
    if (ready_.empty()) return source_ != nullptr && next_of_source(e);
    e = ready_.pop_front();
    return true;
}

bool loop::next_of_source(entry& e) noexcept {
    e = source_->take(false);
    return e.handle != nullptr;
}

WEFT_NOINLINE bool loop::next_chosen(entry& e) noexcept {
    if (slot_.handle != nullptr) put_last(std::exchange(slot_, {}));
    for (; numbered_count_ < ready_.count(); ++numbered_count_)
        if (flow* f = ready_[numbered_count_].of) living_.number(*f);
    if (ready_.empty()) return false;
    std::swap(ready_[0], ready_[chooser_->choose(ready_.count())]);
    e = ready_.pop_front();
    --numbered_count_;
    return true;
}

// -- time -------------------------------------------------------------------------------------

// The last tick that is not after t.
tick loop::tick_at(time_point t) const noexcept {
    return static_cast<tick>(time_left(epoch_, t) / tick_length);
}

// Rounded up, so that no timer is early; but a timer that is due already need not wait for a tick.
// The clock is read only where that is possible: the wheel knows the time of the last iteration, if
// it has any timers.
tick loop::tick_of(time_point t) const noexcept {
    if (t == never) return tick_never;
    const tick whole = tick_at(t);
    if (time_left(epoch_, t) % tick_length == duration::zero()) return whole;
    const bool near = timers_.empty() || whole <= timers_.now() + near_ticks;
    return near && t <= now() ? whole : whole + 1;
}

time_point loop::time_of(tick n) const noexcept {
    const auto most = static_cast<tick>(time_left(epoch_, never) / tick_length);
    return n >= most ? never : epoch_ + static_cast<duration::rep>(n) * tick_length;
}

void loop::arm(timer_node& t) noexcept {
    t.armed = true;
    timers_.add(*::new (static_cast<void*>(t.room)) detail::wheel_timer(t), tick_of(t.deadline));
}

void loop::disarm(timer_node& t) noexcept {
    detail::wheel_timer& w = detail::wheel_timer::of(t);
    timers_.remove(w);
    w.~wheel_timer();
    t.armed = false;
}

std::size_t loop::fire_due() noexcept {
    if (timers_.empty()) return 0;
    const std::size_t fired = timers_.advance(tick_at(now()), [this](wheel_node& n) noexcept {
        timer_node& t = *static_cast<detail::wheel_timer&>(n).timer;
        static_cast<detail::wheel_timer&>(n).~wheel_timer();
        t.armed = false;
        if (chooser_ != nullptr) [[unlikely]]
            chooser_->fired(t);
        t.fire(t);
    });
    // The flows that the timers woke run in the order of the deadlines: the last is not first.
    if (fired != 0 && slot_.handle != nullptr) put_last(std::exchange(slot_, {}));
    return fired;
}

time_point loop::next_due() const noexcept {
    if (ready()) return now();
    return timers_.empty() ? never : time_of(timers_.next());
}

time_point loop::next_deadline() const noexcept { return std::min(next_due(), release_unused_at_); }

// -- running ----------------------------------------------------------------------------------

std::coroutine_handle<> loop::try_pop_next(
    bool (*wanted)(std::coroutine_handle<>) noexcept) noexcept {
    if (turns_left_ == 0 || ready_.empty() || slot_.handle != nullptr || is_observed_)
        return nullptr;
    if (ready_[0].of != nullptr || !wanted(ready_[0].handle)) return nullptr;
    detail::fetch_ahead::before_turn(ready_, turns_left_);
    --turns_left_;
    ++turn_count_;
    slot_uses_ = 0;
    return ready_.pop_front().handle;
}

// Few enough for their memory to stay in the caches, which is where fetching ahead is not in
// bursts.
WEFT_ALWAYS_INLINE bool loop::few_are_ready() const noexcept {
    return ready_.count() <= detail::fetch_ahead::burst_from;
}

// What next() would choose; where that is not obvious, the loop has its turn.
flow* loop::try_pass_turn(bool (*wanted)(ready_turn) noexcept, ready_turn own) noexcept {
    if (turns_left_ == 0 || is_observed_) return nullptr;
    const bool of_slot = slot_.handle != nullptr;
    const bool others_wait = !ready_.empty() || own.handle != nullptr;
    if (of_slot ? slot_uses_ >= slot_uses_limit && others_wait : ready_.empty()) return nullptr;
    const entry e = of_slot ? slot_ : ready_[0];
    if (e.of == nullptr || !wanted(e)) return nullptr;
    detail::fetch_ahead::before_turn(ready_, turns_left_);
    if (of_slot) {
        slot_ = {};
        ++slot_uses_;
    } else {
        static_cast<void>(ready_.pop_front());
        slot_uses_ = 0;
    }
    if (own.handle != nullptr) put_last(own);
    --turns_left_;
    ++passed_turns_;
    detail::this_thread_runs() = {e.of, this, true, few_are_ready()};
    return e.of;
}

// Polls for events from outside and for timers, then runs some turns. Returns how many, with
// timers.
std::size_t loop::run_round() {
    const detail::restore_on_exit put_back;
    detail::this_thread_runs() = {nullptr, this};
    turns_left_ = source_ == nullptr ? round_turns : pace_;  // zero once a timer stops the loop
    take_posted();
    const std::size_t fired = fire_due();
    const std::size_t turns = source_ == nullptr ? run_turns() : run_turns_paced();
    turn_count_ += turns;
    // A timer that is always late, or endless posts of other threads, must not hide events from
    // outside: of two iterations that had work, with no sleep between them, the second polls.
    const bool busy = turns + fired != 0;
    const bool look = ready() || (busy && unlooked_);
    if (look) now_on().poll();
    unlooked_ = busy && !look;
    return turns + fired;
}

// Where others help, an iteration is so long that reading the clock is worth its cost, and so short
// that no idle worker sleeps for much longer than that beside a flow that waits for a thread.
std::size_t loop::run_turns_paced() {
    if (ready())  // what is queued there waits for one iteration at most
        if (const entry e = source_->take(true); e.handle != nullptr) put_last(e);
    const time_point began = now();
    const std::size_t turns = run_turns();
    behind_ = false;
    if (turns_left_ != 0) return turns;
    const bool was_long = now() - began >= long_round;
    pace_ = was_long ? std::max<std::size_t>(pace_ / 2, 1) : std::min(pace_ * 2, round_turns);
    behind_ = was_long && ready();
    return turns;
}

std::size_t loop::run_turns() {
    std::size_t turns = 0;
    const std::size_t passed_around = std::exchange(passed_turns_, 0);  // run_beside() nests
    for (entry e; turns_left_ != 0; ++turns) {
        detail::fetch_ahead::before_turn(ready_, turns_left_);
        if (!next(e)) break;
        --turns_left_;
        detail::this_thread_runs() = {e.of, this, true, few_are_ready()};
        if (is_observed_) [[unlikely]]
            resume_observed(e);
        else
            e.handle.resume();
    }
    // The flow of the last turn may be gone, and what the loop does next is outside any flow.
    detail::this_thread_runs() = {nullptr, this};
    return turns + std::exchange(passed_turns_, passed_around);
}

// Offers those that would wait here for longest. An entry that leaves keeps its place, with nothing
// to do there.
void loop::offload_ready() noexcept {
    if (living_.is_ending()) return;
    const std::size_t count = ready_.count();
    const std::size_t first = count - std::min(count, give_looks);
    std::size_t given = 0;
    for (std::size_t i = count; i != first && given != count / 2; --i) {
        entry& e = ready_[i - 1];
        flow* const f = e.of;
        if (f == nullptr || f->kind->leave == nullptr || !f->kind->leave(*f, e.handle)) continue;
        e = {std::noop_coroutine(), nullptr};
        source_->receive(*f);
        ++given;
    }
}

WEFT_NOINLINE void loop::resume_observed(entry e) {
    if (chooser_ != nullptr) chooser_->ran(e.of);  // before: the flow may be gone afterwards
    if (watch_ != nullptr) watch_->begins(e.of);
    e.handle.resume();
    if (watch_ != nullptr) watch_->ended();
    if (turns_until_ != never && now() >= turns_until_) turns_left_ = 0;
}

// Called before each sleep. Once detail::release_unused() has returned a time, it is not called
// before that time; until then it is called each time. So a cache that had nothing to spare before
// and has now is found, even if nothing ever wakes the loop again.
void loop::release_unused() noexcept {
    if (!now_on().keeps_real_time()) return;
    const time_point present = now();
    if (release_unused_at_ != never && present < release_unused_at_) return;
    const bool long_idle = release_unused_at_ != never;
    release_unused_at_ = detail::release_unused(present);
    if (ready_.capacity() < long_queue || !ready_.empty()) return;
    if (long_idle)
        ready_.trim();
    else
        release_unused_at_ = std::min(release_unused_at_, after(present, detail::unused_period));
}

// Events that the driver delivers become ready here.
bool loop::sleep(time_point until) noexcept {
    const detail::restore_on_exit put_back;
    detail::this_thread_runs() = {nullptr, this};
    unlooked_ = false;
    release_unused();
    until = std::min(until, release_unused_at_);
    if (source_ == nullptr) return now_on().wait(until);
    if (!source_->rest()) return now_on().wait(now());
    const bool can_end = now_on().wait(until);
    pace_ = first_turns;
    source_->rested();
    return can_end;
}

void loop::run(std::source_location caller) {
    const run_by run(*this, caller);
    time_point patience = never;  // until then it waits without an expected event
    bool outside = false;         // an event is expected that needs no deadline
    for (;;) {
        // Acquire: pairs with stop().
        if (stop_.exchange(false, std::memory_order_acquire)) return;
        static_cast<void>(take_wake());  // the loop polls now in any case
        if (run_round() != 0) {
            patience = never;
            outside = false;
            continue;
        }
        expect_own_process(caller);
        time_point until = next_due();
        const bool blocked = until == never && living_.count() != 0;
        if (until == never && !blocked && posted_.empty()) return;
        // Another thread may be about to post: a deadlock is reported only after waiting for a
        // while.
        if (!blocked || outside || reported_) {
            patience = never;
        } else if (patience == never) {
            // Usually one of the oldest flows waits for the outside, and setting a timer costs more
            // than this check.
            outside = waits_for_outside(eldest_looked_at);
            if (!outside) patience = after(now(), deadlock_patience);
        } else if (now() >= patience) {
            outside = waits_for_outside(living_.count());
            if (!outside) report_deadlock();
            patience = never;
        }
        if (blocked && !reported_) until = patience;
        if (!sleep(until)) {
            report_deadlock();
            return;
        }
    }
}

bool loop::run_once(time_point until, std::source_location caller) {
    const run_by run(*this, caller);
    bool ran = run_round() != 0;
    // Acquire: pairs with stop().
    while (!ran && !stop_.exchange(false, std::memory_order_acquire) && !take_wake()) {
        if (!sleep(std::min(until, next_due()))) break;
        const bool woken = take_wake();  // before the iteration: it ends this call, whatever runs
        ran = run_round() != 0;          // else an event of the driver that has run already
        if (woken || now() >= until) break;
    }
    stop_.exchange(false, std::memory_order_acquire);  // pairs with stop(), which this call obeys
    return ran;
}

std::size_t loop::run_until_idle(time_point until, std::source_location caller) {
    const run_by run(*this, caller);
    turns_until_ = until;
    look_who_observes();
    std::size_t turns = 0;
    for (bool more = true; more;) {
        const std::size_t n = run_round();
        turns += n;
        if (n == 0) {
            static_cast<void>(sleep(now()));
            more = ready() || !posted_.empty();
        } else {
            more = until == never || now() < until;
        }
    }
    turns_until_ = never;
    look_who_observes();
    return turns;
}

void loop::stop() noexcept {
    if (running_in_this_thread()) turns_left_ = 0;
    tell(stop_);
}

void loop::wake() noexcept { tell(woken_); }

void loop::tell(atomic<bool>& what) noexcept {
    // Relaxed: a reader that sees `what` set sees this count as well.
    telling_count_.fetch_add(1, std::memory_order_relaxed);
    what.store(true, std::memory_order_release);  // pairs with run() and take_wake()
    now_on().wake();
    telling_count_.fetch_sub(1, std::memory_order_release);  // pairs with kill_all
}

bool loop::take_wake() noexcept {
    // Relaxed: a hint, because it is rarely set; a wake that it misses ends the sleep that follows.
    // Acquire: pairs with wake().
    return woken_.load(std::memory_order_relaxed) &&
           woken_.exchange(false, std::memory_order_acquire);
}

loop::run_by::run_by(loop& l, std::source_location caller) noexcept : loop_(l) {
    if (l.running_in_this_thread()) fail("a loop is run by what it runs", {}, caller);
    // Acquire: pairs with the release of the thread that ran the loop before.
    if (l.running_.exchange(true, std::memory_order_acquire))
        fail("a loop is run by two at once", {}, caller);
    l.expect_own_process(caller);
}

// A thread that sleeps on native_handle() next must be woken. So past wakes are forgotten, and then
// the last check of the inbox is one that leaves it empty, unless there is still something to run
// (inbox.hpp).
loop::run_by::~run_by() {
    loop_.now_on().clear_wake();
    if (!loop_.ready()) loop_.take_posted();
    loop_.now_on().flush();
    loop_.running_.store(false, std::memory_order_release);  // pairs with run_by() and ~loop()
}

void loop::expect_own_process(std::source_location caller) const noexcept {
    if (fork_count() != fork_count_)
        fail("a loop goes on in a forked process: make one there, or exec", {}, caller);
}

unsigned loop::fork_count() noexcept {
    // It can fail only for lack of memory; a fork is not noticed then. Relaxed: a child has one
    // thread when it counts.
    [[maybe_unused]] static const int watched =
        ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    return forks.load(std::memory_order_relaxed);  // as above
}

// -- live flows -------------------------------------------------------------------------------

void loop::register_flow(flow& f) noexcept { living_.register_flow(f); }
void loop::deregister_flow(flow& f) noexcept { living_.deregister_flow(f); }
void loop::request_stop() noexcept { living_.request_stop(); }

}  // namespace weft
