#include "weft/sync/detail/atomic_wait_queue.hpp"

namespace weft::detail {

void queue_node::enlist(waiter& w, atomic_wait_queue& q, const char* what) noexcept {
    owner = &w;
    queue = &q;
    w.enlist(what, &q, this, [](waiter& me) noexcept {
        auto& self = me.operation<queue_node>();
        self.queue->cancel(self);
    });
    q.push_back(*this);
}

// The lock's owner may have been preempted: after a few checks, this thread gives its processor
// away.
atomic_wait_queue::word atomic_wait_queue::lock_slowly() noexcept {
    for (int looks = 0;; ++looks) {
        word w = word_.load(std::memory_order_relaxed);  // a guess, as in lock()
        if ((w & busy) == 0 && word_.compare_exchange_strong(w, w | busy, std::memory_order_acquire,
                                                             std::memory_order_relaxed))
            return w;
        if (looks < 16)
            spin_pause();
        else
            spin_yield();
    }
}

}  // namespace weft::detail
