#include "weft/task/schedule_on.hpp"

namespace weft {

void resume_on::await_suspend(std::coroutine_handle<> h) noexcept {
    flow* const f = current_flow();
    detail::task_flow* const t = detail::task_flow::current();
    if (f != nullptr && t == nullptr)
        fail("resume_on in a flow that stays on its thread: only a task goes over", f->info(),
             caller_);
    if (t != nullptr && t->on_move != nullptr && t->on_move(t->on_end_of, true)) return;
    turn_.handle = h;
    turn_.of = f;
    under_way_ = true;
    executor* const known = there_->fixed_executor();
    if (t != nullptr) t->detach_from_executor(known);
    // The post may resume the coroutine on another thread at once, and destroy this object.
    if (known != nullptr)
        known->post(turn_);
    else
        there_->schedule(turn_);
}

// Called when the frame is destroyed after the post and before the resumption.
void resume_on::take_back() noexcept {
    executor* const known = there_->fixed_executor();
    if (known == nullptr) fail("a frame is destroyed that is on its way to a pool", {}, caller_);
    known->cancel_post(turn_);
}

void resume_on::await_resume() noexcept {
    if (!std::exchange(under_way_, false)) return;
    detail::task_flow* const t = detail::task_flow::current();
    if (t == nullptr) return;
    t->settle();
    if (t->on_move != nullptr) static_cast<void>(t->on_move(t->on_end_of, false));
}

}  // namespace weft
