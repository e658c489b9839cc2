#include "weft/manager/detail/managed_coroutine.hpp"

namespace weft::detail {

managed_coroutine_base::managed_coroutine_base(const managed_kind& k, task_flow& f, manager_core& c,
                                               bool launched, scheduler& where) noexcept
    : managed_task(k, f, c, launched), on(&where), kill_(resume), give_up_(destroy) {
    resume = first_turn;
    destroy = no_turn;
    f.outlived = true;  // `run` goes with this
    f.on_end = managed_coroutine_ended;
    f.on_end_of = static_cast<managed_task*>(this);
    f.on_move = [](void* of, bool leaves) noexcept {
        auto& self = *static_cast<managed_task*>(of);
        if (leaves) return self.leaves();
        self.arrived();
        return false;
    };
    f.hot = f.on_end_of;  // its first line is what the next suspend loads
}

void managed_coroutine_base::launch_coroutine(managed_task& t, bool at_once) {
    scheduler& there = *of(t).on;
    executor* const here = current_executor();
    const bool may =
        here != nullptr && (here == there.fixed_executor() || &here->default_scheduler() == &there);
    if (at_once && may)
        run_turn(*here, t.frame::handle(), nullptr);
    else
        there.schedule(t.queued_command);
}

void managed_coroutine_base::become_killable() noexcept {
    resume = kill_;
    destroy = give_up_;
}

void managed_coroutine_base::first_turn(frame* f) {
    auto& self = static_cast<managed_coroutine_base&>(static_cast<managed_task&>(*f));
    self.become_killable();  // before another thread can see that it has begun
    if (self.line->home == nullptr) self.line->migrate_to(current_executor());
    // It may be freed by any of these.
    if (self.state.begin()) return flow_of(self).run_first_turn();
    self.kind->drop(self);
    self.ended(managed_status::killed, stop_reason::user, nullptr);
}

// The executor drops what was posted to it.
void managed_coroutine_base::no_turn(frame* f) noexcept {
    auto& self = static_cast<managed_coroutine_base&>(static_cast<managed_task&>(*f));
    self.become_killable();
    static_cast<void>(self.state.decide(managed_status::killed, stop_reason::shutdown));
    self.kind->drop(self);
    self.ended(managed_status::killed, stop_reason::shutdown, nullptr);
}

void managed_coroutine_base::stop_coroutine(managed_task& t, stop_reason reason) noexcept {
    t.line->request_stop(reason);
}

killable managed_coroutine_base::may_be_ended_coroutine(const managed_task& t) noexcept {
    const task_flow& f = task_flow::of(*t.line);
    if (!f.registered) return killable::on_arrival;  // its turn is posted here, see resume_on
    return f.waiting != nullptr ? killable::now : killable::never;
}

void managed_coroutine_ended(void* task) noexcept {
    managed_task& t = *static_cast<managed_task*>(task);
    const task_flow& f = task_flow::of(*t.line);
    const stop_reason why = f.member.stopped_by;
    managed_status how = managed_status::done;
    // A stop that was not the manager's, as for a fiber.
    if (f.ending)
        how = managed_status::killed;
    else if (why != stop_reason::none)
        how = managed_status::cancelled;
    t.ended(how, why, why == stop_reason::none ? f.member.error : nullptr);
}

}  // namespace weft::detail
