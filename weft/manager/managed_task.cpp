#include "weft/manager/detail/managed_task.hpp"

#include <memory>

#include "weft/fiber/fiber.hpp"
#include "weft/manager/detail/managed_coroutine.hpp"
#include "weft/manager/detail/managed_fiber.hpp"
#include "weft/manager/detail/manager_core.hpp"
#include "weft/manager/suspension.hpp"

namespace weft::detail {

managed_task::managed_task(const managed_kind& k, flow& f, manager_core& c, bool launched) noexcept
    : frame{come_to_kill, give_up_kill}, core(c), line(&f), kind(&k), state(launched) {
    queued_command.handle = frame::handle();
}

managed_task::~managed_task() {
    while (finish_hook* h = hooks) {
        hooks = h->next;
        h->destroy(*h);
    }
}

void managed_task::free() noexcept {
    // Relaxed: the join that has set it has released its reference since.
    if (error != nullptr && !error_seen.load(std::memory_order_relaxed))
        report_unhandled(error, info());
    kind->free(*this);
}

void managed_task::set_name(std::string_view name) {
    label = std::make_unique<char[]>(name.size() + 1);
    name.copy(label.get(), name.size());
}

managed_task* managed_task::current() noexcept {
    flow* const f = current_flow();
    if (f == nullptr) return nullptr;
    if (watched_fiber* const w = watched_fiber::of(*f))
        return w->on_end == managed_fiber_ended ? static_cast<managed_task*>(w->on_end_of)
                                                : nullptr;
    if (f->kind != &task_flow::task_kind) return nullptr;
    task_flow& t = task_flow::of(*f);
    return t.on_end == managed_coroutine_ended ? static_cast<managed_task*>(t.on_end_of) : nullptr;
}

// -- how it ends --------------------------------------------------------------------------------

bool managed_task::end(managed_status cause, stop_reason reason, bool forced) noexcept {
    switch (state.decide(cause, reason)) {
        case managed_state::owed::nothing:
            return false;
        case managed_state::owed::drop:
            kind->drop(*this);
            ended(cause, reason, nullptr);
            return true;
        case managed_state::owed::wait:
            return true;
        case managed_state::owed::ask:
            break;
    }
    if (forced)
        force();
    else
        kind->stop(*this, reason);
    return true;
}

void managed_task::force() noexcept {
    if (state.force()) pursue();
}

// The caller has a reference. Without a home the task is on its way to another executor, and finds
// the kill when it arrives; or its function has ended.
void managed_task::pursue() noexcept {
    retain();  // the queued command's reference
    do {
        const end_queue::hold not_over(joiners);
        if (!not_over) break;
        if (line->post_home(queued_command)) return;
        if (!state.await_arrival()) break;
        // It may have arrived before it could find the kill: flow, F4.
        if (flow::visit(*line).home() == nullptr || !state.arrive()) return;
    } while (true);
    release();
}

bool managed_task::leaves() noexcept {
    if (!state.is_forced()) [[likely]]
        return false;
    line->stop.request_stop(state.reason());
    line->kind->end(*line);
    return true;
}

void managed_task::arrived() noexcept {
    if (!state.arrive()) [[likely]]
        return;
    static_cast<void>(line->post_home(queued_command));  // which is this executor
}

// Between two of the task's turns, on its executor's thread.
void managed_task::come_to_kill(frame* f) noexcept {
    auto own = managed_ref::adopt(static_cast<managed_task&>(*f));
    own->kill_here();
}
// The executor that it was posted to ends, and with it the flows there.
void managed_task::give_up_kill(frame* f) noexcept {
    auto own = managed_ref::adopt(static_cast<managed_task&>(*f));
    if (!own->line->is_at(current_executor())) own->pursue();
}

void managed_task::kill_here() noexcept {
    if (state.is_finished()) return;
    if (!line->is_at(current_executor())) return pursue();
    const bool others = line->waiting != nullptr && line->waiting->awaits_others();
    switch (others ? killable::never : kind->may_be_ended(*this)) {
        case killable::now:
            line->stop.request_stop(state.reason());
            line->kind->end(*line);
            return;
        case killable::on_arrival:
            retain();  // the queued command's, as in pursue
            if (!state.await_arrival()) release();
            return;
        case killable::never:
            kind->stop(*this, state.reason());
            return;
    }
}

void managed_task::ended(managed_status how, stop_reason why, std::exception_ptr e) noexcept {
    error = std::move(e);                   // a hook that comes too late sees it
    if (state.finish(how, why)) release();  // the queued command's
    if (state.has_hooks()) call_hooks();
    core.leave(*this);  // from here on nothing of the manager is touched
    wait_list woken;
    static_cast<void>(joiners.lock());
    joiners.claim_all(woken);
    joiners.unlock_for_ever();  // M1
    wait_queue::wake_all(woken);
    // No resume can find the task any more.
    if (kept_value* const unread = std::exchange(kept, nullptr)) unread->destroy(*unread);
    release();
}

// The hooks stay until the task is freed: its own id may be stored in one.
void managed_task::call_hooks() noexcept {
    // A caller that was allowed to add a hook may still be adding it.
    {
        const end_queue::hold none_is_added(joiners);
    }
    for (finish_hook* h = hooks; h != nullptr; h = h->next) h->call(*h, *this);
}

bool managed_task::add_hook(finish_hook& h) noexcept {
    const end_queue::hold not_over(joiners);
    if (!not_over || !state.expect_hook()) return false;  // S5
    finish_hook** at = &hooks;
    while (*at != nullptr) at = &(*at)->next;
    *at = &h;
    return true;
}

// -- queries -----------------------------------------------------------------------------------

managed_status managed_task::status() const noexcept {
    if (const managed_status s = state.cause(); s != managed_status::created) return s;
    if (!state.has_begun()) return managed_status::created;
    return line->is_waiting() ? managed_status::waiting : managed_status::running;
}

}  // namespace weft::detail
