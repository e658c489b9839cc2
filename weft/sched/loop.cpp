#include "weft/sched/loop.hpp"

#include <algorithm>
#include <thread>

#include "weft/base/line.hpp"
#include "weft/sched/driver_futex.hpp"
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

}  // namespace

loop::loop() : loop(std::make_unique<driver_futex>()) {}
loop::loop(std::unique_ptr<driver> d)
    : first_driver_(std::move(d)), driver_(first_driver_.get()), epoch_(first_driver_->now()) {}

loop::~loop() {
    WEFT_ASSERT(!is_here(), "destruction of a loop by what it runs");
    end_all();
}

bool loop::adopt(driver* d) noexcept {
    if (adopted_ != nullptr || !now_on().give_way(*d)) return false;
    adopted_.reset(d);
    driver_.store(d, std::memory_order_release);  // pairs with now_on()
    return true;
}

// -- what is ready ----------------------------------------------------------------------------

void loop::post(runnable& r) noexcept {
    if (!is_here()) {
        if (!posted_.push(r)) return;
        now_on().wake();
        wakes_.fetch_add(1, std::memory_order_release);  // pairs with end_all
        return;
    }
    if (slot_.handle != nullptr) ready_.push_back(slot_);
    slot_ = {r.handle, r.of};
}

void loop::defer(std::coroutine_handle<> handle, flow* of) noexcept {
    ready_.push_back({handle, of});
}

void loop::forget(runnable& r) noexcept {
    // Who claimed it may be about to post it still.
    for (;; std::this_thread::yield()) {
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
    while (runnable* r = queue.pop_front()) ready_.push_back({r->handle, r->of});
}

// Who was woken last, if it is his turn, or else the first in the ring.
WEFT_ALWAYS_INLINE bool loop::next(entry& e) noexcept {
    if (chooser_ != nullptr) [[unlikely]]
        return next_chosen(e);
    if (slot_.handle != nullptr) {
        if (slot_uses_ != slot_uses_limit || ready_.empty()) {
            ++slot_uses_;
            e = std::exchange(slot_, {});
            return true;
        }
        ready_.push_back(std::exchange(slot_, {}));
    }
    slot_uses_ = 0;
    if (ready_.empty()) return false;
    e = ready_.pop_front();
    return true;
}

WEFT_NOINLINE bool loop::next_chosen(entry& e) noexcept {
    if (slot_.handle != nullptr) ready_.push_back(std::exchange(slot_, {}));
    if (ready_.empty()) return false;
    std::swap(ready_[0], ready_[chooser_->choose(ready_.count())]);
    e = ready_.pop_front();
    return true;
}

// -- time -------------------------------------------------------------------------------------

// Rounded up, so that no timer is early.
tick loop::tick_of(time_point t) const noexcept {
    if (t <= epoch_) return 0;
    if (t == never) return tick_never;
    const auto whole = (t - epoch_) / tick_length;
    return static_cast<tick>(whole) + ((t - epoch_) % tick_length != duration::zero());
}

time_point loop::time_of(tick n) const noexcept {
    const auto most = static_cast<tick>((never - epoch_) / tick_length);
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
    const auto present = static_cast<tick>((now() - epoch_) / tick_length);
    const std::size_t fired = timers_.advance(present, [](wheel_node& n) noexcept {
        timer_node& t = *static_cast<wheel_timer&>(n).timer;
        static_cast<wheel_timer&>(n).~wheel_timer();
        t.armed = false;
        t.fire(t);
    });
    // Whom they woke run in the order of the deadlines: the last does not come first.
    if (fired != 0 && slot_.handle != nullptr) ready_.push_back(std::exchange(slot_, {}));
    return fired;
}

time_point loop::next_deadline() const noexcept {
    if (ready()) return now();
    return timers_.empty() ? never : time_of(timers_.next());
}

// -- running ----------------------------------------------------------------------------------

// What a long queue holds has left the caches, and its pages the TLB. Such a miss stalls all that
// comes behind it, even as a prefetch, so the next ones are met together: in a loop so short that
// the processor is in all of its rounds at once.
WEFT_ALWAYS_INLINE void loop::fetch_ahead() noexcept {
    for (std::size_t i = 0; i != fetch_count; ++i) {
        const entry& e = ready_[i];
        if (e.of != nullptr)
            e.of->fetch();
        else
            prefetch(e.handle.address());
    }
}

// A look at what came from outside and at the time, then some turns. How many, and timers.
std::size_t loop::run_round() {
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    take_posted();
    const std::size_t fired = fire_due();
    std::size_t turns = 0;
    turns_left_ = round_turns;
    for (entry e; turns_left_ != 0; ++turns) {
        if (turns_left_ % fetch_count == 0 && ready_.count() > fetch_from) fetch_ahead();
        if (!next(e)) break;
        --turns_left_;
        if (chooser_ != nullptr) [[unlikely]]
            chooser_->ran(e.of);  // before: it may be gone afterwards
        detail::this_thread_runs() = {e.of, this};
        e.handle.resume();
    }
    turn_count_ += turns;
    if (ready()) now_on().poll();
    return turns + fired;
}

// What the driver tells of becomes ready here.
bool loop::sleep(time_point until) noexcept {
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    return now_on().wait(until);
}

void loop::run() {
    time_point patience = never;  // until when it has waited for nothing in sight
    for (;;) {
        // Acquire: pairs with stop().
        if (stop_.exchange(false, std::memory_order_acquire)) return;
        if (run_round() != 0) {
            patience = never;
            continue;
        }
        time_point until = next_deadline();
        const bool blocked = until == never && flow_count_ != 0;
        if (until == never && !blocked && posted_.empty()) return;
        // Another thread may be about to post: only who has waited for a while is told.
        if (!blocked)
            patience = never;
        else if (patience == never)
            patience = after(now(), deadlock_patience);
        else if (now() >= patience)
            report_deadlock();
        if (blocked && !reported_) until = patience;
        if (!sleep(until)) {
            report_deadlock();
            return;
        }
    }
}

bool loop::run_once(time_point until) {
    bool ran = run_round() != 0;
    while (!ran && !stop_.exchange(false, std::memory_order_acquire)) {  // pairs with stop()
        if (!sleep(std::min(until, next_deadline()))) break;
        ran = run_round() != 0;  // else the wake told of what has run already
        if (now() >= until) break;
    }
    // Who sleeps on native_handle() next must be woken: the last look before a sleep.
    if (!ready()) take_posted();
    now_on().flush();
    return ran;
}

std::size_t loop::run_until_idle() {
    std::size_t turns = 0;
    for (;;) {
        const std::size_t n = run_round();
        turns += n;
        if (n != 0) continue;
        static_cast<void>(sleep(now()));
        if (!ready() && posted_.empty()) return turns;
    }
}

void loop::stop() noexcept {
    if (is_here()) turns_left_ = 0;
    // Relaxed: who sees stop_ set sees that somebody is here.
    stopping_count_.fetch_add(1, std::memory_order_relaxed);
    stop_.store(true, std::memory_order_release);  // pairs with run()
    now_on().wake();
    stopping_count_.fetch_sub(1, std::memory_order_release);  // pairs with end_all
}

// -- the living -------------------------------------------------------------------------------

void loop::enroll(flow& f) noexcept {
    f.serial = ++enrolled_count_;
    flows_.push_back(f);
    ++flow_count_;
    if (ending_) f.request_stop(stop_reason::shutdown);
}

void loop::strike_off(flow& f) noexcept {
    flows_.remove(f);
    --flow_count_;
}

void loop::end_all() noexcept {
    const detail::as_it_was put_back;
    detail::this_thread_runs() = {nullptr, this};
    take_posted();
    ending_ = true;
    for (auto at = flows_.begin(); at != flows_.end();) {
        flow& f = *at;
        ++at;
        f.request_stop(stop_reason::shutdown);
    }
    run_on();
    // These do not go when they are asked: they wait under a shield, or swallow it. The youngest
    // first: who began it may wait for it in a destructor, which cannot be unwound.
    while (flow* f = flows_.back()) {
        f->kind->end(*f);
        run_on();
    }
    // Whoever posted last, or stopped it, may be about to wake the driver.
    for (auto none = posted_.take();
         wakes_.load(std::memory_order_acquire) != posted_.owed_count() ||
         stopping_count_.load(std::memory_order_acquire) != 0;)
        std::this_thread::yield();
    WEFT_ASSERT(timers_.empty(), "destruction of a loop with timers in it");
}

// Some turns for each that lives, and no more: one that yields for ever is ended as well.
void loop::run_on() noexcept {
    std::size_t left = last_rounds * (1 + (flow_count_ + ready_.count()) / round_turns);
    while (left-- != 0 && run_round() != 0) {
    }
}

void loop::report_deadlock() noexcept {
    if (!std::exchange(reported_, true)) on_deadlock_(*this);
}

namespace {

void name(detail::line& text, const party& who) noexcept {
    text.text(who.kind).text(" ").number(who.id);
    if (who.name != nullptr) text.text(" \"").text(who.name).text("\"");
}

}  // namespace

void loop::print_waiting(int fd) const noexcept {
    for (const flow& f : flows_) {
        detail::line text;
        name(text.text("  "), f.who());
        if (f.waiting == nullptr) {
            text.text(" does not wait\n").write(fd);
            continue;
        }
        text.text(" waits for ").text(f.waiting->what());
        const void* const thing = f.waiting->thing();
        const auto at = std::find_if(flows_.begin(), flows_.end(),
                                     [&](const flow& other) { return &other == thing; });
        if (at != flows_.end())
            name(text.text(": "), (*at).who());
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
