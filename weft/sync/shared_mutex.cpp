#include "weft/sync/shared_mutex.hpp"

namespace weft {
namespace detail {

shared_lock_operation::~shared_lock_operation() {
    if (!node_.given) [[likely]]
        return;
    // The waiter's frame was destroyed before take().
    node_.how == lock_mode::shared ? mutex_->unlock_shared(unknown_caller)
                                   : mutex_->give_up(unknown_caller);
}

bool shared_lock_operation::try_now(lock_owner me) noexcept {
    return node_.how == lock_mode::shared ? mutex_->try_lock_shared() : mutex_->try_lock_as(me);
}

bool shared_lock_operation::start(waiter& w, bool gives_up) noexcept {
    const lock_owner me = lock_owner_of(w);
    atomic_wait_queue& q = mutex_->queue_;
    const atomic_wait_queue::word v = q.lock();
    if (q.front() == nullptr && shared_mutex::admits(v, node_.how)) {
        q.unlock(shared_mutex::joined(v, node_.how));
        if (node_.how == lock_mode::none) mutex_->belongs_to(me);
        return false;
    }
    if (v == shared_mutex::writer && me != anonymous_owner && !gives_up &&
        mutex_->held_by_.load(std::memory_order_relaxed) == me) [[unlikely]]
        fail_not_owner("lock of a shared_mutex", me, "which is written by", me, caller_);
    node_.mutex = mutex_;
    node_.as = me;
    node_.enlist(w, q, "a shared_mutex");
    w.enlist("a shared_mutex", mutex_, &node_, cancel);
    q.unlock(v);
    return true;
}

void shared_lock_operation::take(const waiter* w, wait_status how) {
    if (std::exchange(node_.given, false) && node_.how == lock_mode::none)
        mutex_->belongs_to(node_.as);
    if (how == wait_status::stopped) throw_stopped(w->reason());
}

// A waiter that leaves the queue may have blocked the waiters behind it.
void shared_lock_operation::cancel(waiter& w) noexcept {
    auto& n = w.operation<node>();
    const atomic_wait_queue::word v = n.queue->lock();
    n.queue->remove(n);
    n.mutex->hand_on(v);
}

}  // namespace detail

bool shared_mutex::try_lock_shared() noexcept {
    for (atomic_wait_queue::word w = queue_.load();
         (w & (writer | atomic_wait_queue::waiters)) == 0;) {
        if ((w & atomic_wait_queue::busy) != 0) {
            const atomic_wait_queue::word v = queue_.lock();
            const bool free = queue_.front() == nullptr && (v & writer) == 0;
            queue_.unlock(free ? v + reader : v);
            return free;
        }
        if (queue_.change(w, w + reader)) return true;
    }
    return false;
}

bool shared_mutex::try_lock_as(detail::lock_owner me) noexcept {
    atomic_wait_queue::word nobody = 0;
    if (queue_.load() != 0 || !queue_.change(nobody, writer)) return false;
    belongs_to(me);
    return true;
}

void shared_mutex::belongs_to(detail::lock_owner me) noexcept {
    held_by_.store(me, std::memory_order_relaxed);  // see there
    if (me != detail::anonymous_owner) detail::count_lock(1);
}

void shared_mutex::unlock(std::source_location caller) noexcept {
    const detail::lock_owner me = detail::lock_owner_here();
    const detail::lock_owner held = held_by_.load(std::memory_order_relaxed);  // see there
    if (held != me && held != detail::anonymous_owner) [[unlikely]]
        detail::fail_not_owner("unlock of a shared_mutex", me, "which is written by", held, caller);
    held_by_.store(0, std::memory_order_relaxed);  // see there
    if (held == me) detail::count_lock(-1);
    give_up(caller);
}

void shared_mutex::fail_held(atomic_wait_queue::word w) const noexcept {
    const detail::lock_owner here = detail::lock_owner_here();
    if ((w & writer) == 0) fail("a shared_mutex is destroyed while it is read", {}, unknown_caller);
    detail::fail_not_owner("a shared_mutex is destroyed", here, "which is written by",
                           held_by_.load(std::memory_order_relaxed), unknown_caller);
}

void shared_mutex::give_up(std::source_location caller) noexcept {
    atomic_wait_queue::word w = writer;
    if (queue_.change(w, 0)) return;
    const atomic_wait_queue::word v = queue_.lock();
    WEFT_ASSERT_AT(v == writer, "unlock of a shared_mutex that no writer holds", caller);
    hand_on(0);
}

void shared_mutex::unlock_shared(std::source_location caller) noexcept {
    atomic_wait_queue::word w = queue_.load();
    while ((w & (atomic_wait_queue::busy | atomic_wait_queue::waiters)) == 0) {
        WEFT_ASSERT_AT(w >= reader, "unlock_shared of a shared_mutex that no reader holds", caller);
        if (queue_.change(w, w - reader)) return;
    }
    const atomic_wait_queue::word v = queue_.lock();
    WEFT_ASSERT_AT(v >= reader, "unlock_shared of a shared_mutex that no reader holds", caller);
    hand_on(v - reader);
}

void shared_mutex::hand_on(atomic_wait_queue::word v) noexcept {
    wait_list woken;
    while (detail::queue_node* first = queue_.front()) {
        const auto how = static_cast<detail::shared_lock_operation::node*>(first)->how;
        if (!admits(v, how)) break;
        if (!queue_.claim(*first)) {
            queue_.remove(*first);
            continue;
        }
        first->given = true;
        woken.push_back(*first);
        v = joined(v, how);
    }
    queue_.unlock(v);
    atomic_wait_queue::wake_all(woken);
}

}  // namespace weft
