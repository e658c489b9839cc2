#include "weft/future/shared_future.hpp"

#include <mutex>

namespace weft::detail {

shared_part::shared_part(future_core& c) noexcept {
    listen.notify = [](listener& l) noexcept { static_cast<all&>(l).owner->notify_all(); };
    listen.owner = this;
    static_cast<void>(c.word.attach(listen));  // c has no outcome yet
}

bool shared_part::enlist(wait_node& n) noexcept {
    const std::lock_guard held(queue);
    if (done) return false;
    queue.push_back(n);
    return true;
}

void shared_part::follow(follow_part& p) noexcept {
    {
        const std::lock_guard held(queue);
        if (!done) return following.push_back(p);
    }
    p.post_turn();
}

void shared_part::notify_all() noexcept {
    wait_list woken;
    forward_queue<runnable> notified;
    {
        const std::lock_guard held(queue);
        done = true;
        queue.claim_all(woken);
        notified = std::move(following);
    }
    wait_queue::wake_all(woken);
    while (runnable* n = notified.pop_front()) static_cast<follow_part*>(n)->post_turn();
}

bool shared_wait_operation::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("a shared future", core_, this, [](waiter& gone) noexcept {
        auto& self = gone.operation<shared_wait_operation>();
        self.part_->queue.cancel(self.node_);
    });
    w.mark_external();
    return part_->enlist(node_);
}

}  // namespace weft::detail
