#include "weft/wait/thread_host.hpp"

#include <new>
#include <thread>

#include "weft/base/platform.hpp"

namespace weft::detail {

struct thread_host::armed : list_node<> {
    timer_node* timer;
    explicit armed(timer_node& t) noexcept : timer(&t) {}
};

namespace {

thread_local thread_host host;

std::uint64_t number_of_this_thread() noexcept {
    return std::hash<std::thread::id>()(std::this_thread::get_id());
}

}  // namespace

WEFT_NOINLINE thread_host& this_thread_host() noexcept { return host; }

const flow_kind thread_host::kind = {"thread", suspend, keep, keep, keep, who};

thread_host::thread_host() noexcept : frame{come_back, come_back}, flow_(kind) {
    flow_.set_handle(frame::handle());
    flow_.home = this;
}

party thread_host::who(const flow&) noexcept {
    return {"thread", number_of_this_thread(), nullptr};
}

bool thread_host::is_here() const noexcept { return this == &host; }

void thread_host::come_back(frame* f) noexcept { static_cast<thread_host*>(f)->back_ = true; }

// Runs what is posted until its own waiter was run.
void thread_host::suspend(flow& f) {
    thread_host& self = *static_cast<thread_host*>(f.home);
    while (!self.back_) {
        self.fire_due();  // each time: what is posted may never end
        if (runnable* r = self.take()) run_turn(self, r->handle, r->of != &f ? r->of : nullptr);
    }
    self.back_ = false;
}

runnable* thread_host::take() noexcept {
    const time_point until = earliest();
    std::unique_lock held(lock_);
    while (queue_.empty()) {
        if (until == never)
            posted_.wait(held);
        else if (posted_.wait_until(held, until) == std::cv_status::timeout)
            break;
    }
    return queue_.pop_front();
}

void thread_host::post(runnable& r) noexcept {
    // Notified under the lock: the thread may end as soon as it has been run.
    const std::lock_guard held(lock_);
    queue_.push_back(r);
    posted_.notify_one();
}

// All stand in one queue; a flow's own turn has its place there, and nothing else is deferred.
void thread_host::defer(std::coroutine_handle<> handle, flow* of) noexcept {
    if (of == nullptr || of->turn.handle != handle) fail("a yield in what a waiting thread runs");
    post(of->turn);
}

void thread_host::forget(runnable& r) noexcept {
    for (bool found = false; !found; std::this_thread::yield()) {
        const std::lock_guard held(lock_);
        forward_queue<runnable> rest;
        while (runnable* p = queue_.pop_front()) {
            if (p == &r)
                found = true;
            else
                rest.push_back(*p);
        }
        queue_ = std::move(rest);
    }
}

void thread_host::arm(timer_node& t) noexcept {
    static_assert(sizeof(armed) <= timer_node::room_bytes);
    t.armed = true;
    timers_.push_back(*::new (static_cast<void*>(t.room)) armed(t));
}

void thread_host::disarm(timer_node& t) noexcept {
    auto* a = std::launder(reinterpret_cast<armed*>(t.room));
    timers_.remove(*a);
    a->~armed();
    t.armed = false;
}

time_point thread_host::earliest() const noexcept {
    time_point first = never;
    for (const armed& a : timers_)
        if (a.timer->deadline < first) first = a.timer->deadline;
    return first;
}

void thread_host::fire_due() noexcept {
    if (timers_.empty()) return;
    const time_point t = now();
    list<armed> due;
    for (auto at = timers_.begin(); at != timers_.end();) {
        armed& a = *at;
        ++at;
        if (a.timer->deadline > t) continue;
        timers_.remove(a);
        due.push_back(a);
    }
    // One at a time, for they may disarm each other.
    while (armed* a = due.front()) {
        timer_node& timer = *a->timer;
        disarm(timer);
        timer.fire(timer);
    }
}

}  // namespace weft::detail
