#include "weft/manager/suspension.hpp"

namespace weft::detail {

managed_task& suspend_core::of_caller(std::source_location caller) {
    managed_task* const t = managed_task::current();
    if (t == nullptr) fail("a suspend outside of any task of a task_manager", {}, caller);
    return *t;
}

// A deadline or a stop. A resume may have been first, and then the wait ends by that.
void suspend_core::interrupt(waiter& w, stop_reason reason) noexcept {
    auto& self = w.operation<suspend_core>();
    if (!self.task_->core.cancel_suspended(*self.task_, w)) return;
    self.ended = reason == stop_reason::none ? wait_status::timed_out : wait_status::stopped;
    if (w.claim()) w.wake();
}

// The waiter's frame is destroyed. A task that was resumed, by the manager only, is queued to run.
void suspend_core::cancel(waiter& w) noexcept {
    auto& self = w.operation<suspend_core>();
    if (self.ended != wait_status::woken || self.task_->core.cancel_suspended(*self.task_, w))
        return;
    w.of->home->cancel_post(w);
}

kept_value* suspend_core::start_wait(waiter& w, type_id type) noexcept {
    w.enlist("a resume by its manager", task_, this, cancel, interrupt);
    w.mark_external();
    manager_core& core = task_->core;
    for (;;) {
        kept_value* const kept = core.suspend(*task_, w, type);
        if (kept == nullptr || kept->type == type) return kept;
        core.count_misfit();
        kept->destroy(*kept);
    }
}

}  // namespace weft::detail
