#include "weft/hook/detail/offloaded_call.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/pin.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/io/resolver.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/shield.hpp"

namespace weft::hook {

void offloaded_call::finish() noexcept {
    wait_node* woken;
    {
        const std::lock_guard held(queue_);
        over_ = true;
        woken = queue_.claim_first();
    }
    if (woken != nullptr) woken->owner->wake();
}

bool offloaded_call::is_over() noexcept {
    const std::lock_guard held(queue_);
    return over_;
}

class offloaded_wait {
public:
    static constexpr bool reports_stop = true;

    offloaded_wait(offloaded_call& e, const char* what, time_point deadline = never) noexcept
        : call_(&e), what_(what), deadline_(deadline) {}
    offloaded_wait(offloaded_wait&& other) noexcept
        : offloaded_wait(*other.call_, other.what_, other.deadline_) {}

    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        node_.owner = &w;
        w.enlist(what_, call_, this, [](waiter& gone) noexcept {
            auto& self = gone.operation<offloaded_wait>();
            self.call_->queue_.cancel(self.node_);
            self.call_->hurry();
        });
        w.mark_external();
        const std::lock_guard held(call_->queue_);
        if (call_->over_) return false;
        call_->queue_.push_back(node_);
        return true;
    }
    time_point deadline() const noexcept { return deadline_; }
    int take(const waiter* w, wait_status how) const noexcept {
        if (how != wait_status::stopped) return 0;
        // A stop has come from another thread before the waiter was queued.
        if (node_.owner == nullptr) call_->hurry();
        return why_stopped(w);
    }

private:
    offloaded_call* call_;
    const char* what_;
    time_point deadline_;
    wait_node node_;
};

namespace {
// No process has more threads.
constexpr blocking_pool_options without_bound = {.max_thread_count = 1 << 16};
}  // namespace

blocking_pool& pool_of_waits() noexcept {
    alignas(blocking_pool) static std::byte storage[sizeof(blocking_pool)];
    static blocking_pool& the_one = *::new (storage) blocking_pool(without_bound);
    return the_one;
}

// None of the pools is ever destroyed, and the calls queued there are the parent's.
void clear_parents_threads() noexcept {
    ::new (&pool_of_waits()) blocking_pool(without_bound);
    ::new (&default_blocking_pool()) blocking_pool;
    ::new (&weft::detail::name_pool()) blocking_pool;
}

namespace {

// For a call that its caller has left and that must end soon, whatever is requested of the fiber. A
// request may come just before the thread sleeps, and is therefore repeated.
void see_end_of(offloaded_call& e) {
    const shield from_stops;
    while (!e.is_over() && !is_ending()) {
        offloaded_wait op(e, "a thread that leaves its call",
                          after(now(), std::chrono::milliseconds(1)));
        static_cast<void>(weft::detail::block_for(op, std::source_location::current()));
    }
}

}  // namespace

int run_offloaded(offloaded_call& e, const char* what, blocking_pool& by) {
    const kept_errno own;
    if (!is_own_process()) return e.run(), 0;
    fiber_core* const here = fiber_here();
    if (here == nullptr || here->ending) return answer_to_stop(ECANCELED);
    look_for_pin(*here, what);
    if (const stop_reason r = here->pending_stop(); r != stop_reason::none) {
        return after_wait(r == stop_reason::deadline ? ETIMEDOUT : ECANCELED);
    }
    const cancelable_wait cancelable(here);
    e.keep();
    const bool begun = by.post([own = &e]() noexcept {
        own->run();
        own->finish();
        own->release();
    });
    if (!begun) {
        e.release();
        return EAGAIN;
    }
    e.posted_ = true;
    offloaded_wait op(e, what);
    const int why = weft::detail::block_for(op, std::source_location::current());
    if (why != 0 && e.uses_files()) see_end_of(e);
    return after_wait(why);
}

}  // namespace weft::hook
