#include "weft/sync/detail/condition_queue.hpp"

#include <optional>

#include "weft/stop/stop_callback.hpp"
#include "weft/wait/shield.hpp"

namespace weft::detail {

void notice::hand_on() noexcept { condition->notify_one(); }

condition_awaiter::condition_awaiter(const lock_functions& of_lock, condition_queue& q,
                                     time_limit limit, std::source_location caller) noexcept
    : frame{notified, drop}, of_lock_(of_lock), limit_(limit), caller_(caller), notice_(q) {}

waiter& condition_awaiter::make(std::optional<waiter>& w) noexcept {
    return flow_ != nullptr ? w.emplace(*flow_) : w.emplace(home_of_nobody());
}

bool condition_awaiter::await_suspend(std::coroutine_handle<> h) {
    awaiting_ = h;
    flow_ = current_flow();
    waiter& w = make(for_notice_);
    w.handle = frame::handle();
    if (!w.may_begin(false)) {
        status_ = w.end_wait();
        reason_ = w.reason();
        return false;
    }
    unlocked_ = true;
    notice_.condition->enlist(notice_, w);
    of_lock_.unlock(*this);
    w.begin_wait(deadline_of(limit_));
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
    if (of_lock_.ready(*this)) return false;
    waiter& w = make(for_lock_);
    w.handle = awaiting_;
    if (!of_lock_.start(*this, w)) return false;
    w.begin_wait();
    return true;
}

wait_status condition_awaiter::finish() {
    if (unlocked_) {
        if (for_lock_) for_lock_->end_wait();
        of_lock_.take(*this);
        notice_.given = false;
        unshield();
    }
    if (status_ == wait_status::stopped) throw_stopped(reason_);
    return status_;
}

void condition_awaiter::unshield() noexcept {
    if (std::exchange(shielded_, false)) flow_->lower_shield();
}

void condition_queue::notify_one() noexcept {
    queue_.lock();
    queue_node* n = queue_.claim_first();
    if (n != nullptr) n->given = true;
    queue_.unlock(0);
    if (n != nullptr) n->owner->wake();
}

void condition_queue::notify_all() noexcept {
    wait_list woken;
    queue_.lock();
    queue_.claim_all(woken);
    queue_.unlock(0);
    atomic_wait_queue::wake_all(woken);
}

void condition_queue::notify(notice& n) noexcept {
    queue_.lock();
    const bool waits = queue_.claim(n);  // false for a node that a notify_all is about to wake
    queue_.unlock(0);
    if (waits) n.owner->wake();
}

void condition_queue::enlist(notice& n, waiter& w) noexcept {
    queue_.lock();
    n.enlist(w, queue_, "a condition");
    queue_.unlock(0);
}

std::cv_status condition_queue::block(const condition_lock& lock, time_point until,
                                      stop_token token, std::source_location caller) {
    flow& f = blocking_flow(caller);
    struct wait {
        notice n;
        waiter w;
        wait(condition_queue& q, flow& f) noexcept : n(q), w(f) {}
    };
    maybe_boxed<wait> here(f, *this, f);
    notice& n = here->n;
    waiter& w = here->w;
    w.handle = f.handle;
    if (w.may_begin(false, true)) {
        enlist(n, w);
        lock.unlock(lock.object, caller);
        refuse_on_shared_stack(this, "a condition variable lies on a shared stack");
        {
            const auto wake_it = [this, &n](stop_reason) noexcept { notify(n); };
            const maybe_boxed<stop_callback<decltype(wake_it)>> at_a_stop(f, token, wake_it);
            w.park(until);
        }
        const shield from_a_second_stop;
        lock.lock(lock.object, caller);
        n.given = false;
    }
    const wait_status how = w.end_wait();
    if (how == wait_status::stopped) throw_stopped(w.reason());
    return how == wait_status::woken ? std::cv_status::no_timeout : std::cv_status::timeout;
}

}  // namespace weft::detail
