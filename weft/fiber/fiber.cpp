#include "weft/fiber/fiber.hpp"

#include <cstdio>
#include <memory>

#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {
namespace {

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

void fiber_core::detach() noexcept {
    if (joiners.lock()) {
        detached = true;
        const bool handed_over = !kept;  // the reference is the run's now
        joiners.unlock();
        if (handed_over) return;
    } else if (error() != nullptr) {
        report_unhandled(error(), info());
    }
    release();
}

void fiber_core::set_name(std::string_view name) { detail::set_name(*own(), name); }

bool fiber_end_operation::ready() const noexcept { return fiber_->has_ended(); }

bool fiber_end_operation::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the end of a fiber", static_cast<const flow*>(fiber_), this, [](waiter& me) noexcept {
        auto& self = me.operation<fiber_end_operation>();
        self.fiber_->joiners.cancel(self.node_);
    });
    if (!fiber_->is_at(current_executor())) w.mark_external();
    return fiber_->joiners.enlist(node_);
}

void fiber_end_operation::take(const waiter* w, wait_status how) const {
    if (how == wait_status::stopped) throw_stopped(w->reason());
}

}  // namespace detail

detail::fiber_core* detail::core_taken_from(fiber& f) noexcept {
    f.core_->kept = true;  // no fiber object abandons it
    return std::exchange(f.core_, nullptr);
}

unhandled_handler on_unhandled(unhandled_handler h) noexcept {
    // Release: pairs with report_unhandled(). Acquire: with the call that set the former handler.
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

join_result fiber::join(std::source_location caller) {
    await(detail::fiber_end_operation(begun(caller)), caller);
    return outcome(caller);
}

fiber::join_operation fiber::async_join(std::source_location caller) {
    return join_operation(*this, caller);
}

join_result fiber::outcome(std::source_location caller) {
    detail::fiber_core* c = std::exchange(core_, nullptr);
    if (c == nullptr) fail("a fiber is joined twice", {}, caller);
    const join_result how(c->stopped_by);
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
            await(detail::fiber_end_operation(c));
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
