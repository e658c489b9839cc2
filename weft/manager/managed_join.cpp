#include "weft/manager/managed_join.hpp"

#include <mutex>

namespace weft::detail {

bool managed_end::start(waiter& w) noexcept {
    if (!note_join()) return false;
    node_.owner = &w;
    w.enlist("the end of a managed task", task_->line, this, [](waiter& gone) noexcept {
        auto& self = gone.operation<managed_end>();
        self.task_->joiners.cancel(self.node_);
    });
    if (!task_->line->is_at(current_executor())) w.mark_external();
    return task_->joiners.enlist(node_);
}

// False: the join would never end, and is refused.
bool managed_end::note_join() noexcept {
    managed_task* const self = managed_task::current();
    if (self == nullptr || &self->core != &task_->core) return true;
    const std::lock_guard held(self->core.joins_lock());
    for (managed_task* t = task_.get(); t != nullptr; t = t->joins) {
        if (t != self) continue;
        refused_ = std::make_error_code(std::errc::resource_deadlock_would_occur);
        return false;
    }
    self->joins = task_.get();
    joiner_ = self;
    return true;
}

// The core exists: the joiner is a task in it.
void managed_end::clear_join() noexcept {
    if (joiner_ == nullptr) return;
    const std::lock_guard held(joiner_->core.joins_lock());
    std::exchange(joiner_, nullptr)->joins = nullptr;
}

std::error_code managed_end::finish(const waiter* w, wait_status how) {
    clear_join();
    if (how == wait_status::stopped) throw_stopped(w->reason());
    return refused_ ? refused_ : task_->end_code();
}

void managed_end::rethrow() {
    if (task_->error == nullptr) return;
    task_->error_seen.store(true, std::memory_order_relaxed);  // free() is ordered by the count
    std::rethrow_exception(task_->error);
}

}  // namespace weft::detail
