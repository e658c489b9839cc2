// A fiber as a flow: how it suspends, ends, migrates and is resumed, and its turns.
#include <functional>
#include <utility>

#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/fiber/fiber.hpp"

namespace weft::detail {
namespace {

void suspend_fiber(flow& f) {
    fiber_core& self = fiber_core::of(f);
    if (!self.runs_here()) [[unlikely]]  // in a coroutine that it resumed
        return suspend_outer(*self.own());
    // A turn that ends such a wait begins with a look. Where one waits so, most others do.
    const bool passes = f.waiting == nullptr || !f.waiting->looks_first();
    if (control* const next = passes ? self.pass_turn() : nullptr)
        continue_instead(*next);
    else
        this_coroutine::yield();
}

bool runs_below(const flow& f) noexcept {
    const control* const own = static_cast<const fiber_core&>(f).own();
    const control* c = current();
    while (c != nullptr && c != own) c = c->resumer;
    return c != nullptr;
}

void end_fiber(flow& f) noexcept {
    fiber_core& self = fiber_core::of(f);
    self.ending = true;
    // Its turn is posted: it has yielded, which it may while a coroutine that it started and does
    // not await waits in it; or it has not started and its executor is known.
    const bool is_ready = self.waiting == nullptr || self.after_turn == fiber_core::yielded;
    if (is_ready && self.home != nullptr) self.home->cancel_post(self.turn);
    running_flow& here = this_thread_runs();
    const running_flow before =
        std::exchange(here, {&self, self.home != nullptr ? self.home : here.on});
#if WEFT_EXCEPTIONS
    try {
        kill(self.own(), std::source_location::current());
    } catch (const outer_killed&) {
    } catch (...) {
        self.error() = std::current_exception();
    }
#else
    kill(self.own(), std::source_location::current());
#endif
    this_thread_runs() = before;
    if (self.error() == nullptr && self.stopped_by == stop_reason::none)
        self.stopped_by = self.stop.stop_requested() ? self.stop.reason() : stop_reason::shutdown;
    self.finish();
}

void keep_fiber(flow& f) noexcept { fiber_core::of(f).keep(); }
void release_fiber(flow& f) noexcept { fiber_core::of(f).release(); }

agent_info fiber_info(const flow& f) noexcept {
    const auto& self = static_cast<const fiber_core&>(f);
    const std::string_view name = self.name();
    return {"fiber", self.id(), name.empty() ? nullptr : name.data()};
}

void run_fiber(frame* f) { static_cast<fiber_core*>(f)->run(); }

// Whether it is a turn that run_fiber() would begin, of a fiber that can continue instead of the
// one that runs here.
bool is_fibers_turn(ready_turn e) noexcept {
    if (e.of->kind != &fiber_core::fiber_kind) return false;
    fiber_core& next = fiber_core::of(*e.of);
    return e.handle == next.frame::handle() && next.resume == run_fiber &&
           may_continue_instead(*next.own());
}

// The first turn, and the first turn on each executor that it migrates to.
void start_fiber(frame* f) {
    fiber_core& self = *static_cast<fiber_core*>(f);
    self.resume = run_fiber;
    self.registered = true;     // F2
    self.attach_to_executor();  // F3
    self.run();
}

// Migration, of a fiber that was woken or has yielded: it continues on another executor with a turn
// like its first.
bool leave_fiber(flow& f, std::coroutine_handle<> ready) noexcept {
    fiber_core& self = fiber_core::of(f);
    const bool may = self.migratable && self.registered && ready == self.frame::handle();
    if (!may || (self.waiting != nullptr && !self.waiting->is_only(ready))) return false;
    self.resume = start_fiber;
    self.registered = false;  // F2
    self.detach_from_executor();
    return true;
}

bool has_on_shared_stack(const flow& f, const void* p) noexcept {
    const weft::stack& s = static_cast<const fiber_core&>(f).own()->stack;
    return std::less_equal<const void*>()(s.limit, p) && std::less<const void*>()(p, s.top);
}

void drop_fiber(frame* f) { end_fiber(*static_cast<fiber_core*>(f)); }

}  // namespace

const flow_kind fiber_core::fiber_kind = {
    "fiber",    suspend_fiber, end_fiber,           keep_fiber, release_fiber,
    fiber_info, leave_fiber,   has_on_shared_stack, true,       runs_below};

fiber_core::fiber_core() noexcept : frame{start_fiber, drop_fiber}, flow(fiber_kind) {
    set_handle(frame::handle());
}

control* fiber_core::pass_turn() noexcept {
    const running_flow& here = this_thread_runs();
    if (!here.is_own_turn || resume != run_fiber) return nullptr;
    const bool yields = after_turn == yielded;
    const ready_turn own_turn = {yields ? frame::handle() : nullptr, this};
    flow* const f = here.on->try_pass_turn(is_fibers_turn, own_turn);
    if (f == nullptr) return nullptr;
    of(*f).after_turn = suspended;
    return of(*f).own();
}

void fiber_core::run() {
    after_turn = suspended;
#if WEFT_EXCEPTIONS
    try {
        detail::resume(own(), nullptr, std::source_location::current());
    } catch (const stopped& s) {
        current()->stopped_by = s.reason;
    } catch (...) {
        current()->end_by_exception();
    }
#else
    detail::resume(own(), nullptr, std::source_location::current());
#endif
    current()->end_turn();  // this one may be gone
}

#if WEFT_EXCEPTIONS
// In the handler of the exception.
void fiber_core::end_by_exception() {
    if (own()->word.state() == coroutine_state::suspended)  // a wake cannot report it
        fail("out of memory: no room for a fiber on its shared stack", info(), unknown_caller);
    error() = std::current_exception();
    // If there was no stack, the function's objects are nevertheless destroyed with the fiber.
    kill(own(), std::source_location::current());
}
#endif

void fiber_core::end_turn() noexcept {
    if (after_turn == yielded) {
        home->defer(frame::handle(), this);
    } else if (own()->word.state() != coroutine_state::suspended) {
        finish();
    } else if (waiting == nullptr) [[unlikely]] {
        fail("a fiber suspended without a wait: use this_fiber::yield", info(), unknown_caller);
    }
}

// The end of the run, on its executor's thread.
void fiber_core::finish() noexcept {
    if (locks != 0) [[unlikely]]
        fail("a fiber ended and holds a mutex", info(), unknown_caller);
    if (registered) home->deregister_flow(*this);  // F2
    migrate_to(nullptr);  // F3: waits for threads that post a request to it there
    if (shares_stack()) give_up_seat(*own());  // the joiner may destroy the group
    scope* const parent = is_child ? member->within : nullptr;
    if (parent != nullptr) {
        member->stopped_by = stopped_by;
        // A fiber that was stopped because of a sibling reports the sibling's error.
        if (stopped_by == stop_reason::sibling_failed) member->error = parent->first_error();
    }
    const watched_fiber* const notified = watched ? static_cast<watched_fiber*>(this) : nullptr;
    if (notified != nullptr && !kept) {
        joiners.end_unawaited();  // F1: on_end's object has all references, and nothing joins
        return notified->on_end(notified->on_end_of);
    }
    wait_list woken;
    static_cast<void>(joiners.lock());
    joiners.claim_all(woken);
    const bool unseen = detached && error() != nullptr;
    const bool ours = detached || kept;
    joiners.unlock_for_ever();  // F1, F3
    wait_queue::wake_all(woken);
    if (!ours) return;
    if (unseen) report_unhandled(error(), info());
    if (parent != nullptr) parent->leave(*member);
    if (notified != nullptr) notified->on_end(notified->on_end_of);
    release();
}

}  // namespace weft::detail
