#include "weft/wait/detail/thread_executor.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "weft/base/detail/exception_state.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

namespace {

constinit thread_local thread_executor* host = nullptr;

// If a destructor of another thread-local asks for the thread's executor later, it gets one that is
// never ended.
WEFT_COLD thread_executor& make_host() noexcept {
    auto* const made = new (std::nothrow) thread_executor;
    if (made == nullptr)
        fail("out of memory: a thread's first use of the library", {}, unknown_caller);
    host = made;
    struct at_end {
        ~at_end() { std::exchange(host, nullptr)->end(); }
    };
    static thread_local const at_end of_thread;
    return *made;
}

std::uint64_t new_number() noexcept {
    static constinit atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);  // only uniqueness matters
}

}  // namespace

WEFT_NOINLINE thread_executor& this_thread_host() noexcept {
    thread_executor* const made = host;
    return made != nullptr ? *made : make_host();
}

flow* flow_without_turn() noexcept {
    return current_executor() == nullptr ? &this_thread_host().own_flow() : nullptr;
}

// No executor ends a thread's flow.
const flow_kind thread_executor::kind = {"thread", suspend, nullptr, keep, release, info};

thread_executor::thread_executor() noexcept
    : frame{come_back, come_back}, number_(new_number()), flow_(*this) {
    flow_.set_handle(frame::handle());
    flow_.home = this;
}

void thread_executor::end() noexcept {
    flow_.migrate_to(nullptr);  // from here on no message is sent to it
    runnable* left = queue_.pop_front();
    if (left == &flow_.message) {  // a stop that came too late
        left = queue_.pop_front();
        release(flow_);
    }
    if (left != nullptr || !timers_.empty())
        fail("a thread ends while what was begun on it still waits", info(flow_), unknown_caller);
    release(flow_);
}

// Relaxed: the caller owns a reference. Only the thread itself releases, and the queue's lock
// brought it everything that another thread has retained the flow for.
void thread_executor::keep(flow& f) noexcept {
    of(f).references_.fetch_add(1, std::memory_order_relaxed);
}
void thread_executor::release(flow& f) noexcept {
    thread_executor& self = of(f);
    // Relaxed: as said above.
    if (self.references_.fetch_sub(1, std::memory_order_relaxed) == 1) delete &self;
}

agent_info thread_executor::info(const flow& f) noexcept {
    return {"thread", static_cast<const thread_flow&>(f).of.number_, nullptr};
}

bool thread_executor::running_in_this_thread() const noexcept { return this == host; }

void thread_executor::come_back(frame* f) noexcept {
    static_cast<thread_executor*>(f)->back_ = true;
}

// Runs what is posted until the thread's own waiter has run.
void thread_executor::suspend(flow& f) {
    thread_executor& self = of(f);
    const exceptions_aside own;
    while (!self.back_) {
        self.fire_due();  // in each iteration: the queue may never run empty
        if (runnable* r = self.take()) run_turn(self, r->handle, r->of != &f ? r->of : nullptr);
    }
    self.back_ = false;
}

runnable* thread_executor::take() noexcept {
    const time_point until = timers_.earliest();
    std::unique_lock held(lock_);
    while (queue_.empty()) {
        if (until == never)
            posted_.wait(held);
        else if (!posted_.wait_until(held, until))
            break;
    }
    return queue_.pop_front();
}

void thread_executor::post(runnable& r) noexcept {
    // Notified under the lock: the thread may end as soon as r has run.
    const std::lock_guard held(lock_);
    queue_.push_back(r);
    posted_.notify_one();
}

// All share one queue; a flow's own turn has its link there, and nothing else can be deferred.
void thread_executor::defer(std::coroutine_handle<> handle, flow* of) noexcept {
    if (of == nullptr || of->turn.handle != handle)
        fail("a yield in what a waiting thread runs", {}, unknown_caller);
    post(of->turn);
}

void thread_executor::cancel_post(runnable& r) noexcept {
    spin_wait w;
    for (bool found = false; !found; w.once()) {
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

void thread_executor::arm(timer_node& t) noexcept { timers_.arm(t); }
void thread_executor::disarm(timer_node& t) noexcept { timers_.disarm(t); }

// One at a time, because they may disarm each other. Timers that they arm are left for later.
void thread_executor::fire_due() noexcept {
    if (timers_.empty()) return;
    const time_point t = now();
    const std::uint64_t so_far = timers_.armed_count();
    while (timer_node* due = timers_.due(t, so_far)) {
        timers_.disarm(*due);
        due->fire(*due);
    }
}

}  // namespace weft::detail
