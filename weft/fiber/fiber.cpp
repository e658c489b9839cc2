#include "weft/fiber/fiber.hpp"

#include <cstdio>
#include <functional>
#include <memory>

#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {
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
    if (is_ready && self.home != nullptr) self.home->forget(self.turn);
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

void print_and_abort([[maybe_unused]] std::exception_ptr error, agent_info who) {
#if WEFT_EXCEPTIONS
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "weft: what(): %s\n", e.what());
    } catch (...) {
        std::fputs("weft: an exception that is no std::exception\n", stderr);
    }
#endif
    fail("an exception left a fiber that is not joined", who, unknown_caller);
}

atomic<unhandled_handler> unhandled{print_and_abort};

}  // namespace

const flow_kind fiber_core::fiber_kind = {
    "fiber",    suspend_fiber, end_fiber,           keep_fiber, release_fiber,
    fiber_info, leave_fiber,   has_on_shared_stack, true,       runs_below};

fiber_core::fiber_core() noexcept : frame{start_fiber, drop_fiber}, flow(fiber_kind) {
    set_handle(frame::handle());
}

void fiber_core::drop_body() noexcept {
    if (hot != nullptr) detail::destroy(own());
    hot = nullptr;
}

fiber_core::~fiber_core() {
    drop_body();
    if (is_child)
        std::destroy_at(&member);
    else
        std::destroy_at(&own_error);
}

void fiber_core::become_child(owned<scope_member> m) noexcept {
    std::destroy_at(&own_error);
    std::construct_at(&member, std::move(m));
    is_child = true;
}

void fiber_core::release() noexcept {
    // Acquire and release: the owner of the last reference sees what the others did. The only
    // reference is released by a load: a new one is made only from an existing one.
    if (references.load(std::memory_order_acquire) != 1 &&
        references.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;
    if (lent)
        delete static_cast<borrowed_fiber*>(this);
    else if (watched)
        static_cast<watched_fiber*>(this)->destroy(static_cast<watched_fiber&>(*this));
    else
        delete this;
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

void fiber_core::begin(bool at_once) {
    started = true;
    scheduler* const there = target;
    locals = nullptr;  // replaces target
    executor* const known = there->fixed_executor();
    if (kept) keep();                                            // the run's
    if (home == nullptr && known != nullptr) migrate_to(known);  // F3
    executor* const here = current_executor();
    if (at_once && here != nullptr && (here == known || &here->default_scheduler() == there))
        run_turn(*here, frame::handle(), this);
    else
        there->schedule(turn);
}

// Acquire: pairs with finish. The fiber may have ended because of the request, or without seeing
// it.
bool fiber_core::request_stop(stop_reason reason) noexcept {
    return flow::request_stop(reason) && (!has_ended() || stopped_by == reason);
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
    if (unseen) unhandled.load(std::memory_order_acquire)(error(), info());
    if (parent != nullptr) parent->leave(*member);
    if (notified != nullptr) notified->on_end(notified->on_end_of);
    release();
}

void fiber_core::detach() noexcept {
    if (joiners.lock()) {
        detached = true;
        const bool handed_over = !kept;  // the reference is the run's now
        joiners.unlock();
        if (handed_over) return;
    } else if (error() != nullptr) {
        unhandled.load(std::memory_order_acquire)(error(), info());
    }
    release();
}

void fiber_core::set_name(std::string_view name) { detail::set_name(*own(), name); }

bool join_operation::ready() const noexcept { return fiber_->has_ended(); }

bool join_operation::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the end of a fiber", static_cast<const flow*>(fiber_), this, [](waiter& me) noexcept {
        auto& self = me.operation<join_operation>();
        self.fiber_->joiners.cancel(self.node_);
    });
    if (!fiber_->is_at(current_executor())) w.mark_external();
    return fiber_->joiners.enlist(node_);
}

void join_operation::take(const waiter* w, wait_status how) const {
    if (how == wait_status::stopped) throw_stopped(w->reason());
}

}  // namespace detail

detail::fiber_core* detail::core_taken_from(fiber& f) noexcept {
    f.core_->kept = true;  // no fiber object abandons it
    return std::exchange(f.core_, nullptr);
}

unhandled_handler on_unhandled(unhandled_handler h) noexcept {
    return detail::unhandled.exchange(h, std::memory_order_acq_rel);
}

void detail::report_unhandled(std::exception_ptr error, agent_info who) {
    // Acquire: pairs with on_unhandled.
    detail::unhandled.load(std::memory_order_acquire)(std::move(error), who);
}

void fiber::launch_it(const fiber_options& options, std::source_location caller) {
    scheduler* on = options.on.get();
    if (on == nullptr) {
        executor* const here = current_executor();
        if (here == nullptr)
            fail(
                "a fiber is made outside of any executor: wrap it in weft::run, or name one: {.on "
                "= loop}",
                {}, caller);
        on = &here->default_scheduler();
    }
    core_->target = on;
    if (options.shared != nullptr) {
        if (on->fixed_executor() == nullptr)
            fail("a fiber on a shared stack is begun in a pool: name one of its workers",
                 core_->info(), caller);
        core_->pending_flags |= detail::flow_hot::stack_is_shared;
    }
    core_->migratable = options.migratable && on->fixed_executor() == nullptr;
    if (core_->migratable) core_->pending_flags |= detail::flow_hot::may_migrate;
    if (options.launch == launch::deferred) return;
    core_->home = on->fixed_executor();  // no other thread has a reference yet
    core_->begin(options.launch == launch::dispatch);
}

void fiber::start(std::source_location caller) {
    detail::fiber_core& c = joinable_core(caller);
    if (c.started) fail("second start of a fiber", c.info(), caller);
    c.begin(false);
}

detail::fiber_core& fiber::joinable_core(std::source_location caller) const {
    if (core_ == nullptr) fail("join of a fiber object that has no fiber", {}, caller);
    if (core_ == detail::fiber_core::current()) fail("a fiber joins itself", core_->info(), caller);
    return *core_;
}

detail::fiber_core& fiber::begun(std::source_location caller) {
    detail::fiber_core& c = joinable_core(caller);
    if (!c.started) c.begin(false);
    return c;
}

join_outcome fiber::join(std::source_location caller) {
    await(detail::join_operation(begun(caller)), caller);
    return outcome(caller);
}

fiber::joining fiber::async_join(std::source_location caller) { return joining(*this, caller); }

join_outcome fiber::outcome(std::source_location caller) {
    detail::fiber_core* c = std::exchange(core_, nullptr);
    if (c == nullptr) fail("a fiber is joined twice", {}, caller);
    const join_outcome how(c->stopped_by);
    const std::exception_ptr error = std::exchange(c->error(), nullptr);
    c->release();
    if (error) std::rethrow_exception(error);
    return how;
}

void fiber::detach(std::source_location caller) {
    detail::fiber_core& c = begun(caller);
    core_ = nullptr;
    c.detach();
}

void fiber::end() noexcept {
    if (core_ == nullptr) return;
    detail::fiber_core& c = *core_;
    if (!c.started) {
        core_ = nullptr;
        return c.release();
    }
    if (!c.has_ended()) {
        c.request_stop(stop_reason::user);
        if (&c != detail::fiber_core::current()) {
            const shield from_our_own_stop;
            await(detail::join_operation(c));
        }
    }
    core_ = nullptr;
    c.detach();
}

namespace this_fiber {
namespace {

detail::fiber_core& running(std::source_location caller) {
    detail::fiber_core* c = detail::fiber_core::current();
    if (c == nullptr) fail("a call of this_fiber outside of any fiber", {}, caller);
    return *c;
}

}  // namespace
}  // namespace this_fiber

void detail::yield_rarely(std::source_location caller) {
    fiber_core& c = this_fiber::running(caller);
    const stop_reason r = c.pending_stop();
    if (WEFT_EXCEPTIONS && r != stop_reason::none && std::uncaught_exceptions() == 0)
        throw_stopped(r);
    c.after_turn = fiber_core::yielded;
    c.kind->suspend(c);
}

namespace this_fiber {

fiber::id get_id() noexcept {
    const detail::fiber_core* c = detail::fiber_core::current();
    return c != nullptr ? c->id() : 0;
}
std::string_view name() noexcept {
    const detail::fiber_core* c = detail::fiber_core::current();
    return c != nullptr ? c->name() : std::string_view();
}
void set_name(std::string_view name, std::source_location caller) {
    running(caller).set_name(name);
}

stop_token get_stop_token() noexcept {
    detail::fiber_core* c = detail::fiber_core::current();
    return c != nullptr ? c->stop.get_token() : stop_token();
}

void throw_if_stopped() {
    const flow* f = current_flow();
    if (f == nullptr) return;
    if (const stop_reason r = f->pending_stop(); r != stop_reason::none) detail::throw_stopped(r);
}

std::size_t stack_usage_bytes() noexcept {
    const detail::fiber_core* c = detail::fiber_core::current();
    return c != nullptr ? detail::high_water(c->own()) : 0;
}

}  // namespace this_fiber
}  // namespace weft
