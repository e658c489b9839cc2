#include "weft/sched/blocking.hpp"

#include <cstddef>
#include <mutex>
#include <new>

#include "weft/sched/detail/detached_thread.hpp"

namespace weft {

bool detail::blocking_call::begin(waiter& w, const char* what) noexcept {
    owner = &w;
    w.enlist(what, &pool_, this, cancel, interrupt);
    w.mark_external();
    if (pool_.submit(*this)) return true;
    run(*this);  // on this thread: late is better than never
    return false;
}

void detail::blocking_call::cancel(waiter& w) noexcept {
    auto& self = w.operation<blocking_call>();
    self.asked_to_end_.store(true, std::memory_order_relaxed);  // see is_asked_to_end()
    if (!self.pool_.cancel(self)) self.pool_.wait_for(self);
}

void detail::blocking_call::interrupt(waiter& w, stop_reason) noexcept {
    auto& self = w.operation<blocking_call>();
    self.asked_to_end_.store(true, std::memory_order_relaxed);  // as above
    if (self.pool_.cancel(self) && w.claim()) w.wake();
}

blocking_pool& default_blocking_pool() noexcept {
    alignas(blocking_pool) static std::byte storage[sizeof(blocking_pool)];
    static blocking_pool& the_one = *::new (storage) blocking_pool;
    return the_one;
}

blocking_pool::~blocking_pool() {
    std::unique_lock held(lock_);
    WEFT_ASSERT_AT(queue_.empty(), "destruction of a pool that has waiters", unknown_caller);
    ending_ = true;
    more_.notify_all();
    while (thread_count_ != 0) less_.wait(held);
}

std::size_t blocking_pool::thread_count() const noexcept {
    const std::lock_guard held(lock_);
    return thread_count_;
}

std::size_t blocking_pool::waiting_count() const noexcept {
    const std::lock_guard held(lock_);
    return waiting_count_;
}

bool blocking_pool::submit(detail::blocking_job& j) noexcept {
    const std::lock_guard held(lock_);
    if (idle_count_ <= waiting_count_ && thread_count_ < options_.max_thread_count &&
        !begin_thread() && thread_count_ == 0)
        return false;
    queue_.push_back(j);
    ++waiting_count_;
    more_.notify_one();
    return true;
}

// Called under the lock.
bool blocking_pool::begin_thread() noexcept {
    const auto run = [](void* self) noexcept { static_cast<blocking_pool*>(self)->work(); };
    if (!detail::begin_detached_thread(run, this)) return false;
    ++thread_count_;
    return true;
}

bool blocking_pool::cancel(detail::blocking_job& j) noexcept {
    const std::lock_guard held(lock_);
    if (!j.is_linked()) return false;
    queue_.remove(j);
    --waiting_count_;
    return true;
}

void blocking_pool::wait_for(detail::blocking_job& j) noexcept {
    std::unique_lock held(lock_);
    while (j.under_way) less_.wait(held);
}

void blocking_pool::work() noexcept {
    std::unique_lock held(lock_);
    for (;;) {
        if (detail::blocking_job* j = queue_.pop_front()) {
            --waiting_count_;
            j->under_way = true;
            waiter* const w = j->owner;
            held.unlock();
            j->run(*j);
            held.lock();
            if (w == nullptr) continue;
            // A thread that has claimed meanwhile destroys the call once it sees that the call is
            // over.
            j->under_way = false;
            const bool claimed = w->claim();
            less_.notify_all();
            if (!claimed) continue;
            held.unlock();
            w->wake();
            held.lock();
            continue;
        }
        if (ending_) break;
        ++idle_count_;
        const bool in_time = more_.wait_until(held, after(steady_now(), options_.idle_timeout));
        --idle_count_;
        if (!in_time && queue_.empty()) break;
    }
    --thread_count_;
    less_.notify_all();  // under the lock: the pool may be gone afterwards
}

}  // namespace weft
