#include "weft/sched/loop.hpp"

#include <pthread.h>

#include <algorithm>
#include <functional>

#include "weft/base/atomic.hpp"
#include "weft/base/give_back.hpp"
#include "weft/base/line.hpp"
#include "weft/base/spin_wait.hpp"
#include "weft/sched/driver_futex.hpp"
#include "weft/sched/fetch_ahead.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {
namespace {

constexpr duration tick_length = std::chrono::milliseconds(1);

struct wheel_timer : wheel_node {
    timer_node* timer;
    explicit wheel_timer(timer_node& t) noexcept : timer(&t) {}
    static wheel_timer& of(timer_node& t) noexcept {
        return *std::launder(reinterpret_cast<wheel_timer*>(t.room));
    }
};
static_assert(sizeof(wheel_timer) <= timer_node::room_bytes);

// How often the process was forked, counted in the child, from its first loop on.
constinit atomic<unsigned> forks{0};

}  // namespace

[[gnu::weak]] std::unique_ptr<driver> detail::driver_of_a_loop() {
    return std::make_unique<driver_futex>();
}

loop::loop() : loop(detail::driver_of_a_loop()) {}
loop::loop(std::unique_ptr<driver> d)
    : first_driver_(std::move(d)), driver_(first_driver_.get()), epoch_(first_driver_->now()) {}

loop::~loop() {
    WEFT_ASSERT_AT(!is_here(), "destruction of a loop by what it runs", unknown_place);
    if (running_.load(std::memory_order_acquire))  // pairs with ~run_by
        fail("destruction of a loop that another thread runs", {}, unknown_place);
    end_all();
    WEFT_ASSERT_AT(timers_.empty(), "destruction of a loop with timers in it", unknown_place);
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
        fail("out of memory: no room for what is ready to run", {}, unknown_place);
}

void loop::post(runnable& r) noexcept {
    if (!is_here()) {
        if (!posted_.push(r)) return;
        now_on().wake();
        wakes_.fetch_add(1, std::memory_order_release);  // pairs with end_all
        return;
    }
    if (slot_.handle != nullptr) put_last(slot_);
    slot_ = {r.handle, r.of};
}

void loop::post_in_order(runnable& r) noexcept {
    if (is_here())
        put_last({r.handle, r.of});
    else
        post(r);
}

void loop::launch(runnable& r) noexcept {
    if (is_here())
        put_last({r.handle, r.of});
    else
        post(r);
}

launcher& loop::begins_on() noexcept { return source_ != nullptr ? source_->begins_on() : *this; }

void loop::defer(std::coroutine_handle<> handle, flow* of) noexcept { put_last({handle, of}); }

// Within the round: so the world is looked at as often as if he had been put into the queue. Others
// who could have work for a loop, or who count its turns, are not passed over.
bool loop::spare_turn() noexcept {
    if (turns_left_ == 0 || ready() || source_ != nullptr || is_observed_) return false;
    --turns_left_;
    ++turn_count_;
    return true;
}

void loop::forget(runnable& r) noexcept {
    // Who claimed it may be about to post it still.
    for (detail::spin_wait w;; w.once()) {
        take_posted();
        if (slot_.handle == r.handle) {
            slot_ = {};
            return;
        }
        // It keeps its place, and nothing to do there.
        for (std::size_t i = 0; i < ready_.count(); ++i) {
            if (ready_[i].handle != r.handle) continue;
            ready_[i] = {std::noop_coroutine(), nullptr};
            return;
        }
    }
}

// Who is busy looks again, and spares the others the wake; the last look before a sleep is the
// other kind (inbox.hpp).
void loop::take_posted() noexcept {
    auto queue = ready() ? posted_.take_and_watch() : posted_.take();
    while (runnable* r = queue.pop_front()) put_last({r->handle, r->of});
}

// Who was woken last, if it is his turn, or else the first in the ring.
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

// Rounded up, so that no timer is early; but one that is due already need not wait for a tick. The
// clock is asked only where that may be: the wheel knows the time of the last round, if it has any.
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
    timers_.add(*::new (static_cast<void*>(t.room)) wheel_timer(t), tick_of(t.deadline));
}

void loop::disarm(timer_node& t) noexcept {
    wheel_timer& w = wheel_timer::of(t);
    timers_.remove(w);
    w.~wheel_timer();
    t.armed = false;
}

std::size_t loop::fire_due() noexcept {
    if (timers_.empty()) return 0;
    const std::size_t fired = timers_.advance(tick_at(now()), [this](wheel_node& n) noexcept {
        timer_node& t = *static_cast<wheel_timer&>(n).timer;
        static_cast<wheel_timer&>(n).~wheel_timer();
        t.armed = false;
        if (chooser_ != nullptr) [[unlikely]]
            chooser_->fired(t);
        t.fire(t);
    });
    // Whom they woke run in the order of the deadlines: the last does not come first.
    if (fired != 0 && slot_.handle != nullptr) put_last(std::exchange(slot_, {}));
    return fired;
}

time_point loop::next_due() const noexcept {
    if (ready()) return now();
    return timers_.empty() ? never : time_of(timers_.next());
}

time_point loop::next_deadline() const noexcept { return std::min(next_due(), give_back_at_); }

// -- running ----------------------------------------------------------------------------------

std::coroutine_handle<> loop::take_next(bool (*wanted)(std::coroutine_handle<>) noexcept) noexcept {
    if (turns_left_ == 0 || ready_.empty() || slot_.handle != nullptr || is_observed_)
        return nullptr;
    if (ready_[0].of != nullptr || !wanted(ready_[0].handle)) return nullptr;
    detail::fetch_ahead::before_turn(ready_, turns_left_);
    --turns_left_;
    ++turn_count_;
    slot_uses_ = 0;
    return ready_.pop_front().handle;
}

// A look at what came from outside and at the time, then some turns. How many, and timers.
std::size_t loop::run_round() {
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    turns_left_ = source_ == nullptr ? round_turns : pace_;  // none any more where a timer stops it
    take_posted();
    const std::size_t fired = fire_due();
    const std::size_t turns = source_ == nullptr ? run_turns() : run_turns_paced();
    turn_count_ += turns;
    // What is always late, or told by other threads without end, must not hide the world: of two
    // rounds that had something to do, and no sleep between them, the second looks.
    const bool busy = turns + fired != 0;
    const bool look = ready() || (busy && unlooked_);
    if (look) now_on().poll();
    unlooked_ = busy && !look;
    return turns + fired;
}

// Where others help, a round is so long that its time is worth a look at the clock, and so short
// that none of them sleeps for much longer than that beside somebody who waits.
std::size_t loop::run_turns_paced() {
    if (ready())  // what waits there waits for a round at most
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
    for (entry e; turns_left_ != 0; ++turns) {
        detail::fetch_ahead::before_turn(ready_, turns_left_);
        if (!next(e)) break;
        --turns_left_;
        detail::this_thread_runs() = {e.of, this};
        if (is_observed_) [[unlikely]]
            resume_observed(e);
        else
            e.handle.resume();
    }
    // The flow of the last turn may be gone, and what the loop does next is no flow's.
    detail::this_thread_runs() = {nullptr, this};
    return turns;
}

// Those that would wait here for longest. What goes keeps its place, and nothing to do there.
void loop::give_away() noexcept {
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
    if (chooser_ != nullptr) chooser_->ran(e.of);  // before: it may be gone afterwards
    if (watch_ != nullptr) watch_->begins(e.of);
    e.handle.resume();
    if (watch_ != nullptr) watch_->ended();
    if (turns_until_ != never && now() >= turns_until_) turns_left_ = 0;
}

// Before each sleep, until the answer is a moment, and then not before it. So a keeper that had
// nothing to spare a moment ago and has now is found, though nothing ever wakes the loop again.
void loop::give_back() noexcept {
    if (!now_on().keeps_real_time()) return;
    const time_point present = now();
    if (give_back_at_ != never && present < give_back_at_) return;
    const bool long_idle = give_back_at_ != never;
    give_back_at_ = detail::give_back(present);
    if (ready_.capacity() < long_queue || !ready_.empty()) return;
    if (long_idle)
        ready_.trim();
    else
        give_back_at_ = std::min(give_back_at_, after(present, detail::give_back_period));
}

// What the driver tells of becomes ready here.
bool loop::sleep(time_point until) noexcept {
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    unlooked_ = false;
    give_back();
    until = std::min(until, give_back_at_);
    if (source_ == nullptr) return now_on().wait(until);
    if (!source_->rest()) return now_on().wait(now());
    const bool can_end = now_on().wait(until);
    pace_ = first_turns;
    source_->rested();
    return can_end;
}

void loop::run(place at) {
    const run_by run(*this, at);
    time_point patience = never;  // until when it has waited for nothing in sight
    bool outside = false;         // something is in sight that needs no deadline
    for (;;) {
        // Acquire: pairs with stop().
        if (stop_.exchange(false, std::memory_order_acquire)) return;
        static_cast<void>(take_wake());  // it looks round now
        if (run_round() != 0) {
            patience = never;
            outside = false;
            continue;
        }
        expect_own_process(at);
        time_point until = next_due();
        const bool blocked = until == never && living_.count() != 0;
        if (until == never && !blocked && posted_.empty()) return;
        // Another thread may be about to post: only who has waited for a while is told.
        if (!blocked || outside || reported_) {
            patience = never;
        } else if (patience == never) {
            // Mostly one of the eldest waits for the world, and to set a timer costs more than to
            // look.
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

bool loop::run_once(time_point until, place at) {
    const run_by run(*this, at);
    bool ran = run_round() != 0;
    // Acquire: pairs with stop().
    while (!ran && !stop_.exchange(false, std::memory_order_acquire) && !take_wake()) {
        if (!sleep(std::min(until, next_due()))) break;
        const bool woken = take_wake();  // before the round: it ends this call, whatever that runs
        ran = run_round() != 0;          // else the driver told of what has run already
        if (woken || now() >= until) break;
    }
    stop_.exchange(false, std::memory_order_acquire);  // pairs with stop(), which this obeys
    return ran;
}

std::size_t loop::run_until_idle(time_point until, place at) {
    const run_by run(*this, at);
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
    if (is_here()) turns_left_ = 0;
    tell(stop_);
}

void loop::wake() noexcept { tell(woken_); }

void loop::tell(atomic<bool>& what) noexcept {
    // Relaxed: a reader that sees `what` set sees this count as well.
    telling_count_.fetch_add(1, std::memory_order_relaxed);
    what.store(true, std::memory_order_release);  // pairs with run() and take_wake()
    now_on().wake();
    telling_count_.fetch_sub(1, std::memory_order_release);  // pairs with end_all
}

bool loop::take_wake() noexcept {
    // Relaxed: a hint, for it is seldom set; a wake that it misses ends the sleep that follows.
    // Acquire: pairs with wake().
    return woken_.load(std::memory_order_relaxed) &&
           woken_.exchange(false, std::memory_order_acquire);
}

loop::run_by::run_by(loop& l, place at) noexcept : loop_(l) {
    if (l.is_here()) fail("a loop is run by what it runs", {}, at);
    // Acquire: pairs with the release of who ran it before, be it another thread.
    if (l.running_.exchange(true, std::memory_order_acquire))
        fail("a loop is run by two at once", {}, at);
    l.expect_own_process(at);
}

// Who sleeps on native_handle() next must be woken: what told of the past is forgotten, and then
// the last look is one that leaves the inbox empty, unless there is something to do still
// (inbox.hpp).
loop::run_by::~run_by() {
    loop_.now_on().forget_wake();
    if (!loop_.ready()) loop_.take_posted();
    loop_.now_on().flush();
    loop_.running_.store(false, std::memory_order_release);
}

void loop::expect_own_process(place at) const noexcept {
    if (fork_count() != fork_count_)
        fail("a loop goes on in a forked process: make one there, or exec", {}, at);
}

unsigned loop::fork_count() noexcept {
    // It fails for want of memory; a fork is then not noticed.
    [[maybe_unused]] static const int watched =
        ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    return forks.load(std::memory_order_relaxed);  // a child has one thread when it is counted
}

// -- the living -------------------------------------------------------------------------------

void loop::enroll(flow& f) noexcept { living_.enroll(f); }
void loop::strike_off(flow& f) noexcept { living_.strike_off(f); }
void loop::request_stop_of_all() noexcept { living_.request_stop_of_all(); }

void loop::end_all() noexcept {
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    take_posted();
    request_stop_of_all();
    run_on(never);
    // These do not go when they are asked. The youngest first: who began it may wait for it in a
    // destructor, which cannot be unwound.
    patience_ = after(now(), deadlock_patience);
    while (flow* f = living_.youngest()) {
        end_or_await(*f);
        run_on(patience_);
    }
    drop_ready();  // it may hold timers of its own
    end_timers();
    drop_ready();
    // Whoever posted last, or stopped it, may be about to wake the driver.
    for (detail::spin_wait w; wakes_.load(std::memory_order_acquire) != posted_.owed_count() ||
                              telling_count_.load(std::memory_order_acquire) != 0;)
        w.once();
}

// One has handed the stop on to another executor, or waits for those who live there, or is about to
// be woken by another thread: that is awaited, for a while, of the last also while others run. The
// others wait under a shield, or swallow the stop.
void loop::end_or_await(flow& f) noexcept {
    const waiter* const w = f.waiting;
    const bool is_claimed = w != nullptr && w->is_claimed();
    const bool may_be_answered =
        is_claimed || (w != nullptr && (w->reason() != stop_reason::none || w->is_for_others()));
    if (may_be_answered && now() < patience_ &&
        (ready() ? is_claimed : now_on().wait(std::min(patience_, next_due()))))
        return;
    const bool before = std::exchange(ends_one_, true);
    f.kind->end(f);
    ends_one_ = before;
}

// From below one that is being ended. It goes as in end_all(), only deeper; those that are being
// ended further up the stack stay where they are.
bool loop::run_beside(bool may_end) noexcept {
    if (!ends_one_) return false;
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    if (may_end) {
        flow* const f = living_.youngest_to_end();
        if (f == nullptr) return false;
        end_or_await(*f);
    } else {
        ends_one_ = false;  // what a turn ends is below that turn
        run_on(patience_);
        ends_one_ = true;
    }
    return true;
}

// Some turns for each that lives, and no more: one that yields for ever is ended as well. A round
// at least, for what the end of one has brought about.
void loop::run_on(time_point until) noexcept {
    std::size_t left = last_rounds * (1 + (living_.count() + ready_.count()) / round_turns);
    while (left-- != 0 && run_round() != 0 && now() < until) {
    }
}

// Those that say so learn that their moment does not come. The others stay: whoever has them
// disarms them, or the destructor tells that he cannot any more.
void loop::end_timers() noexcept {
    if (timers_.empty()) return;
    timers_.advance(tick_never - 1, [this](wheel_node& n) noexcept {
        timer_node& t = *static_cast<wheel_timer&>(n).timer;
        if (!t.fires_at_end) return timers_.add(n, timers_.now());
        static_cast<wheel_timer&>(n).~wheel_timer();
        t.armed = false;
        t.fire(t);
    });
}

// What has no turn any more: functions that post themselves again and again.
void loop::drop_ready() noexcept {
    for (;;) {
        take_posted();
        if (slot_.handle != nullptr) put_last(std::exchange(slot_, {}));
        if (ready_.empty()) return;
        std::coroutine_handle<>(ready_[0].handle).destroy();  // in its place, to be forgotten there
        ready_.pop_front();
    }
}

// -- deadlock ---------------------------------------------------------------------------------

bool loop::waits_for_outside(std::size_t looks) const noexcept {
    for (const flow& f : living_.flows()) {
        if (looks-- == 0) return false;
        if (f.waiting != nullptr && f.waiting->is_for_outside()) return true;
    }
    return false;
}

void loop::report_deadlock() noexcept {
    if (!std::exchange(reported_, true) && on_deadlock_ != nullptr) on_deadlock_(*this);
}

namespace {

// A set of what stands in one report.
class things {
public:
    static constexpr std::size_t most = 100;

    bool add(const void* thing) noexcept {
        if (count_ == most) return false;
        all_[count_++] = thing;
        return true;
    }
    void sort() noexcept { std::sort(all_, all_ + count_, std::less<>()); }
    bool contains(const void* thing) const noexcept {
        return std::binary_search(all_, all_ + count_, thing, std::less<>());
    }

private:
    const void* all_[most];
    std::size_t count_ = 0;
};

}  // namespace

void loop::print_waiting(int fd) const noexcept {
    // Which of the things in the report are flows: two walks in all, and not one for each.
    things waited_for;
    for (const flow& f : living_.flows())
        if (!waited_for.add(f.waiting != nullptr ? f.waiting->thing() : nullptr)) break;
    waited_for.sort();
    things that_are_flows;
    for (const flow& f : living_.flows())
        if (waited_for.contains(&f)) static_cast<void>(that_are_flows.add(&f));
    that_are_flows.sort();

    std::size_t left = things::most;
    for (const flow& f : living_.flows()) {
        detail::line text;
        if (left-- == 0) {
            text.text("  and others, ").number(living_.count()).text(" in all\n").write(fd);
            return;
        }
        text.text("  ").who(f.who());
        const void* const thing = f.waiting != nullptr ? f.waiting->thing() : nullptr;
        if (f.waiting == nullptr)
            text.text(" does not wait");
        else
            text.text(" waits for ").text(f.waiting->what());
        if (that_are_flows.contains(thing))
            text.text(": ").who(static_cast<const flow*>(thing)->who());
        else if (thing != nullptr)
            text.text(" at ").hex(reinterpret_cast<std::uintptr_t>(thing));
        text.text("\n").write(fd);
    }
}

void loop::print_deadlock(loop& l) noexcept {
    detail::line text;
    text.text("weft: deadlock? nothing is ready, no deadline is set, and these wait:\n").write(2);
    l.print_waiting(2);
}

}  // namespace weft
