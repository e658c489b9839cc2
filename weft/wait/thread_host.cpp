#include "weft/wait/thread_host.hpp"

#include <thread>

#include "weft/base/platform.hpp"

namespace weft::detail {

namespace {

thread_local thread_host host;

std::uint64_t number_of_this_thread() noexcept {
    return std::hash<std::thread::id>()(std::this_thread::get_id());
}

}  // namespace

WEFT_NOINLINE thread_host& this_thread_host() noexcept { return host; }

flow* flow_without_turn() noexcept {
    return current_executor() == nullptr ? &this_thread_host().own_flow() : nullptr;
}

const flow_kind thread_host::kind = {"thread", suspend, keep, keep, keep, who};

thread_host::thread_host() noexcept : frame{come_back, come_back}, flow_(kind) {
    flow_.set_handle(frame::handle());
    flow_.home = this;
}

thread_host::~thread_host() {
    runnable* left = queue_.pop_front();
    if (left == &flow_.message) left = queue_.pop_front();  // a stop that came too late
    if (left != nullptr || !timers_.empty())
        fail("a thread ends while what was begun on it still waits", who(flow_));
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
    const time_point until = timers_.earliest();
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

void thread_host::arm(timer_node& t) noexcept { timers_.arm(t); }
void thread_host::disarm(timer_node& t) noexcept { timers_.disarm(t); }

// One at a time, for they may disarm each other; not those that they arm.
void thread_host::fire_due() noexcept {
    if (timers_.empty()) return;
    const time_point t = now();
    const std::uint64_t so_far = timers_.armed_count();
    while (timer_node* due = timers_.due(t, so_far)) {
        timers_.disarm(*due);
        due->fire(*due);
    }
}

}  // namespace weft::detail
