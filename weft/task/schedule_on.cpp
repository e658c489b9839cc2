#include "weft/task/schedule_on.hpp"

namespace weft {

void resume_on::await_suspend(std::coroutine_handle<> h) noexcept {
    flow* const f = current_flow();
    detail::task_flow* const t = detail::task_flow::current();
    if (f != nullptr && t == nullptr)
        fail("resume_on in a flow that stays on its thread: only a task goes over", f->who(),
             place_);
    turn_.handle = h;
    turn_.of = f;
    under_way_ = true;
    if (t != nullptr) t->leave_home(*there_);
    there_->post(turn_);  // from here on it may be running
}

void resume_on::await_resume() noexcept {
    if (!std::exchange(under_way_, false)) return;
    if (detail::task_flow* t = detail::task_flow::current()) t->arrive();
}

}  // namespace weft
