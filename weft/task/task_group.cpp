#include "weft/task/detail/task_group.hpp"

#include <exception>
#include <span>

namespace weft::detail {

bool task_group::begin(waiter& w, std::span<task_flow* const> tasks) {
    if (tasks.empty()) return false;
    scope_.emplace(scope::rules{.enough = enough_});
    for (task_flow* t : tasks) scope_->enter(t->member);
    join_.emplace(*scope_);
    join_->start(w);
    scheduler& here = scheduler_here();
    for (task_flow* t : tasks) t->post_first_turn(here);
    return true;
}

void task_group::check_begun(const waiter* w, wait_status how) const {
    if (how == wait_status::stopped && !scope_) throw_stopped(w->reason());
}

void task_group::check_all(std::span<task_flow* const> tasks) const {
    if (scope_)
        if (const std::exception_ptr first = scope_->first_error()) std::rethrow_exception(first);
    for (task_flow* t : tasks) t->check_ended_well();
}

}  // namespace weft::detail
