#include "weft/parallel/detail/fork_core.hpp"

#include <mutex>

#include "weft/wait/operation.hpp"
#include "weft/wait/stopped.hpp"

namespace weft::detail {

// Called when a child failed, or other children have been taken away.
std::coroutine_handle<> fork_core::next_slowly(transfer_base& from, std::size_t i) noexcept {
    was_slow_ = true;
    failed_ = (from.word & transfer_base::error) != 0;
    if (failed_)
        while (i != count_ && may_take(i)) ++i;  // dropped: these children need not begin
    if (i != count_ && wait_for(count_ - i)) return std::noop_coroutine();
    ended_ = true;
    return transfer_to(from, parent_, parent_is_foreign_);
}

// False if the children that were taken away have ended already.
bool fork_core::wait_for(std::size_t gone_count) noexcept {
    flow* const f = current_flow();
    waiter& w = f != nullptr ? waiter_.emplace(*f) : waiter_.emplace(home_of_nobody());
    w.handle = parent_;
    w.enlist(
        "what it has forked", this, this, [](waiter&) noexcept {},
        [](waiter& stopped, stop_reason why) noexcept { stopped.operation<fork_core>().ask(why); });
    w.mark_external();
    w.begin_wait();
    if (failed_) ask(stop_reason::sibling_failed);
    const auto n = static_cast<std::ptrdiff_t>(gone_count);
    // Acquire: pairs with counted() of each child that has ended. Release: publishes the waiter.
    return owed_.fetch_sub(n, std::memory_order_acq_rel) != n;  // F3
}

void fork_core::ask(stop_reason reason) noexcept {
    {
        const std::lock_guard held(lock_);
        if (asked_ != stop_reason::none) return;
        asked_ = reason;
    }
    for (std::size_t i = running_ + 1; i < count_; ++i) {
        task_flow* t;
        {
            const std::lock_guard held(lock_);
            t = children_[i].flow;
        }
        if (t != nullptr) t->request_stop(reason);
    }
}

// The worker that took the child runs the child's first turn, as the turn of a flow.
void fork_core::begin_apart(frame* f) noexcept {
    fork_child& c = *static_cast<fork_child*>(f);
    fork_core& of = *c.of;
    auto* const t = new task_flow(c.body, current_executor());  // without memory the program ends
    t->inherit_context(of.context_);
    t->on_end = counted;
    t->on_end_of = &of;
    stop_reason asked;
    {
        const std::lock_guard held(of.lock_);
        c.flow = t;  // F2
        asked = of.asked_;
    }
    if (asked != stop_reason::none) t->request_stop(asked);
    t->run_first_turn();
}

// A child that was taken away has ended; only the child's result is still needed.
void fork_core::counted(void* core) noexcept {
    auto& of = *static_cast<fork_core*>(core);
    // Release: publishes the result. Acquire: of the waiter, pairs with wait_for().
    if (of.owed_.fetch_add(1, std::memory_order_acq_rel) != -1) return;  // F3
    if (of.waiter_->claim()) of.waiter_->wake();
}

void fork_core::end_slowly() {
    ended_ = true;
    if (waiter_) waiter_->end_wait();
    std::exception_ptr first;  // the first failure's, or else of a stop
    bool has_failed = false;
    stop_reason stopped_by = stop_reason::none;
    for (std::size_t i = 0; i != count_; ++i) {
        fork_child& c = children_[i];
        const task_flow* const t = c.flow;
        if (t != nullptr) {
            c.body = t->body;  // the result is taken from it
            if (t->member.stopped_by != stop_reason::none) stopped_by = t->member.stopped_by;
        }
        if (has_failed || c.body == nullptr || !c.body.done()) continue;
        const bool is_stop = t != nullptr && t->member.stopped_by != stop_reason::none;
        if (first != nullptr && is_stop) continue;
        if (std::exception_ptr e = error_of(c.promise())) {
            first = std::move(e);
            has_failed = !is_stop;
        }
    }
    if (first != nullptr) std::rethrow_exception(first);
    if (stopped_by != stop_reason::none) throw_stopped(stopped_by);  // the child was killed
}

void fork_core::drop_slowly(fork_child* children, std::size_t count) noexcept {
    if (!ended_) abandon();
    for (std::size_t i = 0; i != count; ++i) children[i].drop();
}

// Called if the parent's frame is destroyed while the parent waits.
void fork_core::abandon() noexcept {
    std::size_t i = running_ + 1;
    while (i < count_ && may_take(i)) ++i;
    for (; i < count_; ++i) {
        task_flow* const t = children_[i].flow;
        if (t != nullptr && t->has_ended()) continue;
        if (t == nullptr || !t->is_at(current_executor()))
            fail("a frame is destroyed while what it has forked runs on another executor", {},
                 unknown_caller);
        t->kind->end(*t);
    }
}

}  // namespace weft::detail
