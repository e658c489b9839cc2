#include "weft/sync/condition_variable.hpp"

#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {

condition_awaiter::condition_awaiter(condition_variable& c, std::unique_lock<mutex>& lock,
                                     time_point until, bool reports_stop) noexcept
    : frame{notified, drop},
      condition_(c),
      lock_(lock),
      until_(until),
      reports_stop_(reports_stop) {}

waiter& condition_awaiter::make(std::optional<waiter>& w) noexcept {
    return flow_ != nullptr ? w.emplace(*flow_) : w.emplace(home_of_nobody());
}

bool condition_awaiter::await_suspend(std::coroutine_handle<> h) {
    WEFT_ASSERT(lock_.owns_lock(), "a wait for a condition without its mutex");
    awaiting_ = h;
    flow_ = current_flow();
    waiter& w = make(for_notice_);
    w.handle = frame::handle();
    if (!w.admit(reports_stop_)) {
        status_ = w.conclude();
        reason_ = w.reason();
        return false;
    }
    // The lock owns nothing meanwhile: the frame may be destroyed.
    mutex_ = lock_.release();
    condition_.enlist_and_release(node_, w, *mutex_);
    w.engage(until_);
    return true;
}

void condition_awaiter::notified(frame* f) {
    auto& self = *static_cast<condition_awaiter*>(f);
    self.status_ = self.for_notice_->conclude();
    self.reason_ = self.for_notice_->reason();
    if (!self.begin_lock()) self.awaiting_.resume();
}

bool condition_awaiter::begin_lock() {
    if (flow_ != nullptr) {
        ++flow_->shields;  // no stop ends the second wait
        shielded_ = true;
    }
    lock_operation& op = locking_.emplace(*mutex_);
    if (op.ready()) return false;
    waiter& w = make(for_lock_);
    w.handle = awaiting_;
    if (!op.start(w)) return false;
    w.engage();
    return true;
}

void condition_awaiter::finish() {
    if (mutex_ == nullptr) return;  // it was never released
    if (for_lock_) for_lock_->conclude();
    locking_->take(nullptr, wait_status::woken);
    lock_ = std::unique_lock(*std::exchange(mutex_, nullptr), std::adopt_lock);
    unshield();
}

void condition_awaiter::unshield() noexcept {
    if (std::exchange(shielded_, false)) --flow_->shields;
}

}  // namespace detail

void condition_variable::notify_one() noexcept {
    queue_.lock();
    detail::queue_node* n = queue_.claim_first();
    queue_.unlock(0);
    if (n != nullptr) n->owner->wake();
}

void condition_variable::notify_all() noexcept {
    wait_list woken;
    queue_.lock();
    queue_.claim_all(woken);
    queue_.unlock(0);
    detail::word_queue::wake_all(woken);
}

void condition_variable::enlist_and_release(detail::queue_node& n, waiter& w, mutex& m) noexcept {
    queue_.lock();
    n.enlist(w, queue_, "a condition");
    queue_.unlock(0);
    m.unlock();
}

wait_status condition_variable::block(std::unique_lock<mutex>& lock, time_point until,
                                      bool reports_stop, stop_reason& reason) {
    WEFT_ASSERT(lock.owns_lock(), "a wait for a condition without its mutex");
    flow& f = detail::blocking_flow(std::source_location::current());
    detail::queue_node node;
    waiter w(f);
    w.handle = f.handle;
    if (!w.admit(reports_stop)) {
        reason = w.reason();
        return w.conclude();
    }
    // The lock owns nothing meanwhile: the fiber may be killed.
    mutex& m = *lock.release();
    enlist_and_release(node, w, m);
    const wait_status how = w.park(until);
    reason = w.reason();
    {
        const shield from_a_second_stop;
        m.lock();
    }
    lock = std::unique_lock(m, std::adopt_lock);
    return how;
}

void condition_variable::wait(std::unique_lock<mutex>& lock) {
    stop_reason reason;
    if (block(lock, never, false, reason) == wait_status::stopped) detail::throw_stopped(reason);
}

std::cv_status condition_variable::wait_until(std::unique_lock<mutex>& lock, time_point deadline) {
    stop_reason reason;
    const wait_status how = block(lock, deadline, true, reason);
    return how == wait_status::woken ? std::cv_status::no_timeout : std::cv_status::timeout;
}

}  // namespace weft
