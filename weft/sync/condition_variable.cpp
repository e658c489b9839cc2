#include "weft/sync/condition_variable.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "weft/stop/stop_callback.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {

void notice::hand_on() noexcept { condition->notify_one(); }

condition_awaiter::condition_awaiter(condition_variable& c, std::unique_lock<mutex>& lock,
                                     time_point until, std::source_location caller) noexcept
    : frame{notified, drop}, lock_(lock), until_(until), caller_(caller), notice_(c) {}

condition_awaiter::~condition_awaiter() {
    for_lock_.reset();  // before the shield is lowered, so that no stop can end the second wait
    unshield();
}

waiter& condition_awaiter::make(std::optional<waiter>& w) noexcept {
    return flow_ != nullptr ? w.emplace(*flow_) : w.emplace(home_of_nobody());
}

bool condition_awaiter::await_suspend(std::coroutine_handle<> h) {
    WEFT_ASSERT_AT(lock_.owns_lock(), "a wait for a condition without its mutex", caller_);
    awaiting_ = h;
    flow_ = current_flow();
    waiter& w = make(for_notice_);
    w.handle = frame::handle();
    if (!w.may_begin(false)) {
        status_ = w.end_wait();
        reason_ = w.reason();
        return false;
    }
    // The unique_lock owns nothing during the wait, because the frame may be destroyed.
    mutex_ = lock_.release();
    notice_.condition->enlist_and_release(notice_, w, *mutex_, caller_);
    w.begin_wait(until_);
    return true;
}

void condition_awaiter::notified(frame* f) {
    auto& self = *static_cast<condition_awaiter*>(f);
    self.status_ = self.for_notice_->end_wait();
    self.reason_ = self.for_notice_->reason();
    if (!self.begin_lock()) self.awaiting_.resume();
}

bool condition_awaiter::begin_lock() {
    if (flow_ != nullptr) {
        flow_->raise_shield();  // no stop ends the second wait
        shielded_ = true;
    }
    lock_operation& op = locking_.emplace(*mutex_, caller_);
    if (op.ready()) return false;
    waiter& w = make(for_lock_);
    w.handle = awaiting_;
    if (!op.start(w)) return false;
    w.begin_wait();
    return true;
}

wait_status condition_awaiter::finish() {
    if (mutex_ != nullptr) {  // null: the mutex was never released
        if (for_lock_) for_lock_->end_wait();
        locking_->take(nullptr, wait_status::woken);
        lock_ = std::unique_lock(*std::exchange(mutex_, nullptr), std::adopt_lock);
        notice_.given = false;
        unshield();
    }
    if (status_ == wait_status::stopped) throw_stopped(reason_);
    return status_;
}

void condition_awaiter::unshield() noexcept {
    if (std::exchange(shielded_, false)) flow_->lower_shield();
}

}  // namespace detail

void condition_variable::notify_one() noexcept {
    queue_.lock();
    detail::queue_node* n = queue_.claim_first();
    if (n != nullptr) n->given = true;
    queue_.unlock(0);
    if (n != nullptr) n->owner->wake();
}

void condition_variable::notify_all() noexcept {
    wait_list woken;
    queue_.lock();
    queue_.claim_all(woken);
    queue_.unlock(0);
    detail::atomic_wait_queue::wake_all(woken);
}

void condition_variable::notify(detail::notice& n) noexcept {
    queue_.lock();
    const bool waits = queue_.claim(n);  // false for a node that a notify_all is about to wake
    queue_.unlock(0);
    if (waits) n.owner->wake();
}

void condition_variable::enlist_and_release(detail::notice& n, waiter& w, mutex& m,
                                            std::source_location caller) noexcept {
    queue_.lock();
    n.enlist(w, queue_, "a condition");
    queue_.unlock(0);
    m.unlock(caller);
}

std::cv_status condition_variable::block(std::unique_lock<mutex>& lock, time_point until,
                                         stop_token token, std::source_location caller) {
    WEFT_ASSERT_AT(lock.owns_lock(), "a wait for a condition without its mutex", caller);
    flow& f = detail::blocking_flow(caller);
    struct wait {
        detail::notice n;
        waiter w;
        wait(condition_variable& c, flow& f) noexcept : n(c), w(f) {}
    };
    detail::maybe_boxed<wait> here(f, *this, f);
    detail::notice& n = here->n;
    waiter& w = here->w;
    w.handle = f.handle;
    if (w.may_begin(false, true)) {
        // The unique_lock owns nothing during the wait, because the fiber may be killed.
        mutex& m = *lock.release();
        enlist_and_release(n, w, m, caller);
        detail::refuse_on_shared_stack(this, "a condition_variable lies on a shared stack");
        {
            const auto wake_it = [this, &n](stop_reason) noexcept { notify(n); };
            const detail::maybe_boxed<stop_callback<decltype(wake_it)>> at_a_stop(f, token,
                                                                                  wake_it);
            w.park(until);
        }
        const shield from_a_second_stop;
        m.lock(caller);
        lock = std::unique_lock(m, std::adopt_lock);
        n.given = false;
    }
    const wait_status how = w.end_wait();
    if (how == wait_status::stopped) detail::throw_stopped(w.reason());
    return how == wait_status::woken ? std::cv_status::no_timeout : std::cv_status::timeout;
}

}  // namespace weft
