#include "weft/wait/detail/scope.hpp"

#include <exception>
#include <mutex>
#include <utility>

#include "weft/wait/detail/nursery_block.hpp"
#include "weft/wait/detail/off_stack.hpp"
#include "weft/wait/stopped.hpp"

namespace weft::detail {

void scope_member::ask(stop_node& n, stop_reason reason) noexcept {
    static_cast<scope_member&>(n).child->request_stop(reason);
}

scope::~scope() {
    WEFT_ASSERT_AT(living_count_ == 0, "a scope is destroyed while flows live in it",
                   unknown_caller);
    while (scope_member* m = failed_.pop_front()) m->child->kind->release(*m->child);
}

void scope::tell(nursery_block& block) noexcept {
    {
        const std::lock_guard held(queue_);
        block_ = &block;
    }
    if (std::exception_ptr before = first_error()) block.fail(std::move(before));
}

void scope::enter(scope_member& m) noexcept {
    refuse_on_shared_stack(this, "a nursery, or another scope, lies on a shared stack");
    m.within = this;
    {
        const std::lock_guard held(queue_);
        living_.push_back(m);
        ++living_count_;
        elsewhere_ |= !m.child->is_at(current_executor());
    }
    m.attach(stop_.get_token());
}

void scope::leave(scope_member& m) noexcept {
    m.detach();  // from here on no stop reaches it
    bool ask_others;
    bool notifies;
    nursery_block* notified = nullptr;
    wait_list woken;
    {
        const std::lock_guard held(queue_);
        m.place = ++ended_count_;
        ask_others = ended_count_ == enough_ || (m.has_failed() && one_fails_all_stop_);
        living_.remove(m);
        cut_short_ |= m.stopped_by == stop_reason::deadline;
        if (m.has_failed()) {
            m.child->kind->retain(*m.child);
            failed_.push_back(m);
            notified = block_;
        }
        notifies = ask_others || notified != nullptr;
        if (!notifies && --living_count_ == 0) queue_.claim_all(woken);
    }
    if (notifies) {
        // Without the lock, because this runs the callbacks that were put on the token. The scope
        // stays meanwhile: the child is still counted. C1
        if (ask_others)
            stop_.request_stop(m.has_failed() ? stop_reason::sibling_failed : stop_reason::user);
        if (notified != nullptr) notified->fail(first_error());
        const std::lock_guard held(queue_);
        if (--living_count_ == 0) queue_.claim_all(woken);
    }
    wait_queue::wake_all(woken);  // C2
}

bool scope::empty() noexcept { return living_count() == 0; }

std::size_t scope::living_count() noexcept {
    const std::lock_guard held(queue_);
    return living_count_;
}

std::vector<std::exception_ptr> scope::errors() const {
    std::vector<std::exception_ptr> all;
    for (const scope_member& m : failed_) all.push_back(m.error);
    return all;
}

std::exception_ptr scope::first_error() const noexcept {
    const std::lock_guard held(queue_);
    return failed_.empty() ? nullptr : failed_.front()->error;
}

void scope::kill_children() noexcept {
    for (;;) {
        scope_member* m;
        {
            const std::lock_guard held(queue_);
            m = living_.front();
        }
        if (m == nullptr) return;
        flow& f = *m->child;
        if (!f.is_at(current_executor()))
            fail("a frame is destroyed while its children run on another executor", f.info(),
                 unknown_caller);
        f.kind->end(f);
    }
}

bool scope::end_operation::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist(
        "the end of its children", scope_, this,
        [](waiter& gone) noexcept {
            auto& self = gone.operation<end_operation>();
            self.scope_->queue_.cancel(self.node_);
            self.scope_->kill_children();
        },
        [](waiter& stopped, stop_reason reason) noexcept {
            stopped.operation<end_operation>().scope_->request_stop(reason);
        });
    const std::lock_guard held(scope_->queue_);
    if (scope_->living_count_ == 0) return false;
    // The same where an exception is passing through a destructor: its frames cannot be unwound.
    if (scope_->elsewhere_ || std::uncaught_exceptions() != 0) w.mark_cross_executor();
    scope_->queue_.push_back(node_);
    return true;
}

void scope::end_operation::take(const waiter* w, wait_status how) const {
    // Written before the last child left, whose leave() woke this waiter. An error is reported
    // instead.
    const bool cut_short = std::exchange(scope_->cut_short_, false);  // reported once
    const bool late = w != nullptr && w->reason() == stop_reason::deadline && cut_short &&
                      scope_->failed_.empty();
    if (how == wait_status::stopped || late) throw_stopped(w->reason());
}

}  // namespace weft::detail
