#include "weft/future/detail/in_fiber.hpp"

#include <memory>
#include <utility>

#include "weft/base/detail/tls.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/wait/context_local.hpp"

namespace weft::detail {
namespace {

// The idle fibers of a thread, the latest first. `room` is 0 before the first use and after the end
// of the thread.
struct idle_fibers {
    borrowed_fiber* first;
    std::size_t room;
    bool known;

    borrowed_fiber* take() noexcept {
        borrowed_fiber* const f = first;
        if (f == nullptr) return nullptr;
        first = static_cast<borrowed_fiber*>(const_cast<void*>(f->next));
        ++room;
        return f;
    }
    bool put(borrowed_fiber& f) noexcept {
        if (room == 0) return false;
        --room;
        f.next = std::exchange(first, &f);
        return true;
    }
};

}  // namespace
}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::idle_fibers, weft_tls_idle_fibers, this_thread_idle);
WEFT_DEFINE_THREAD_LOCAL(weft::detail::idle_fibers, weft_tls_idle_fibers);

namespace weft::detail {
namespace {

// A further value of after_turn, beside fiber_core::after: the function has returned, and the fiber
// is idle.
constexpr std::uint8_t rested = 2;

// A thread keeps this many idle fibers with their stacks; further fibers end.
constexpr std::size_t idle_limit = 16;

struct job {
    future_core* core;
    const borrowed_turn* turn;
};

// With bindings, the target is the address of a block of its own, with bit 0 set.
struct bound_target {
    const borrowed_turn* turn;
    context_node* context;
};
constexpr std::uintptr_t bound_tag = 1;

bound_target take_target(future_core& c) noexcept {
    const auto target = reinterpret_cast<std::uintptr_t>(std::exchange(c.target, nullptr));
    if ((target & bound_tag) == 0) return {reinterpret_cast<const borrowed_turn*>(target), nullptr};
    auto* const b = reinterpret_cast<bound_target*>(target & ~bound_tag);
    const bound_target taken = *b;
    block_cache::release(b, sizeof(bound_target));
    return taken;
}

bool is_lent(std::coroutine_handle<> h) noexcept {
    return static_cast<frame*>(h.address())->resume == borrowed_target::take_turn;
}

// Ends the idle fibers of a thread that ends.
struct end_at_exit {
    ~end_at_exit() {
        idle_fibers& idle = this_thread_idle();
        idle.room = 0;
        while (borrowed_fiber* f = idle.take()) {
            kill(f->own(), std::source_location::current());
            f->release();
        }
    }
    void arm() noexcept {}
};
thread_local end_at_exit at_exit;

WEFT_NOINLINE bool put_first(borrowed_fiber& f) noexcept {
    idle_fibers& idle = this_thread_idle();
    if (idle.known) return false;
    at_exit.arm();
    idle.known = true;
    idle.room = idle_limit;
    return idle.put(f);
}

// Whether another function would find the fiber as if the fiber were new.
bool is_as_new(borrowed_fiber& f) noexcept {
    return f.pending_flags == 0 && f.shields == 0 && f.own()->extras == nullptr &&
           !f.stop.stop_requested() && f.has_default_settings();
}

// Puts the fiber on the idle list, if it is as new and a place is free. True: it is on the list.
bool rest(borrowed_fiber& f) noexcept {
    if (!is_as_new(f)) return false;
    if (f.registered) {
        f.home->deregister_flow(f);
        f.registered = false;
    }
    if (!this_thread_idle().put(f) && !put_first(f)) return false;
    f.after_turn = rested;
    return true;
}

// What the fiber's coroutine runs: one function after the other.
struct borrowed_body {
    borrowed_fiber* self;

    void operator()() {
        // Runs also if the fiber is killed, or the function throws.
        struct at_end {
            borrowed_fiber& f;
            ~at_end() {
                if (f.locals != nullptr) destroy_locals(f);
                if (!f.ending || f.guest == nullptr) return;
                auto& c = *static_cast<future_core*>(f.guest);
                c.put_stopped(stop_reason::shutdown);
                f.guest = nullptr;
                f.tell_guest(&c);
            }
        } const at{*self};
        do {
            const job first = *static_cast<const job*>(self->next);
            run(first);
            while (is_as_new(*self)) {
                const std::coroutine_handle<> h = self->home->try_pop_next(is_lent);
                if (h == nullptr) break;
                future_core& c = future_core::of(static_cast<frame*>(h.address()));
                const bound_target next = take_target(c);
                self->guest = &c;
                self->tell_guest = next.turn->ended;
                self->context = next.context;
                run({&c, next.turn});
            }
        } while (rest(*self) && (this_coroutine::yield(), true));
    }
    void run(const job& j) {
        j.turn->run(*j.core);
        self->guest = nullptr;
        if (self->locals != nullptr) destroy_locals(*self);
        if (self->context != nullptr) self->inherit_context(nullptr);
        if (self->locks != 0) [[unlikely]]
            fail("a fiber ended and holds a mutex", self->info(), unknown_caller);
    }
};

// The fiber has ended, together with the function that it ran, if any; or the fiber has not begun,
// because no stack could be had.
void end(borrowed_fiber& f, std::exception_ptr error, stop_reason stopped_by) noexcept {
    if (f.own()->word.state() == coroutine_state::ready) [[unlikely]] {
        const job& j = *static_cast<const job*>(f.next);
        j.turn->refused(*j.core);
    } else if (auto* const c = static_cast<future_core*>(f.guest)) {
        if (error != nullptr)
            c->put_exception(std::move(error));
        else
            c->put_stopped(stopped_by);
        f.tell_guest(c);
    }
    f.finish();
}

// The function waits, or yields: the fiber is a flow like another until it returns.
void live_on(borrowed_fiber& f) noexcept {
    auto& c = *static_cast<future_core*>(f.guest);
    if (!f.registered) {
        f.registered = true;
        f.home->register_flow(f);
    }
    if (f.after_turn == fiber_core::yielded) {
        f.home->defer(f.frame::handle(), &f);
    } else if (f.waiting == nullptr) [[unlikely]] {
        fail("a fiber suspended without a wait: use this_fiber::yield", f.info(), unknown_caller);
    }
    if (c.manner == manner::in_fiber) return;
    c.target = static_cast<flow*>(&f);
    c.manner = manner::in_fiber;
    const stop_reason asked = c.stops.open();
    if (asked != stop_reason::none) static_cast<flow&>(f).request_stop(asked);
}

void take_turn(borrowed_fiber& f) noexcept {
    std::exception_ptr error;
    stop_reason stopped_by = stop_reason::none;
    f.after_turn = fiber_core::suspended;
#if WEFT_EXCEPTIONS
    try {
        resume(f.own(), nullptr, std::source_location::current());
    } catch (const stopped& s) {
        stopped_by = s.reason;
    } catch (...) {
        error = std::current_exception();
    }
#else
    resume(f.own(), nullptr, std::source_location::current());
#endif
    if (f.after_turn == rested) [[likely]]
        return;
    if (f.own()->word.state() == coroutine_state::suspended) {
        live_on(f);
    } else {
        end(f, std::move(error), stopped_by);
    }
}

borrowed_fiber* make_fiber() {
    auto f = std::make_unique<borrowed_fiber>();
    f->set_body(borrowed_body{f.get()});
    f->frame::resume = [](frame* self) { take_turn(*static_cast<borrowed_fiber*>(self)); };
    f->locals = nullptr;  // replaces `target` in the union
    f->started = true;
    f->kept = true;  // the only reference
    return f.release();
}

// Null: no memory for a fiber.
borrowed_fiber* try_new_fiber() noexcept {
#if WEFT_EXCEPTIONS
    try {
        return make_fiber();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
#else
    return make_fiber();
#endif
}

}  // namespace

void run_in_fiber(future_core& c, const borrowed_turn& turn, context_node* context) noexcept {
    borrowed_fiber* f = this_thread_idle().take();
    if (f == nullptr) f = try_new_fiber();
    if (f == nullptr) [[unlikely]] {
        context_node::release(context);
        return turn.refused(c);
    }
    const job j{&c, &turn};
    f->guest = &c;
    f->tell_guest = turn.ended;
    f->next = &j;
    f->home = current_executor();  // no other thread knows of the fiber yet
    f->context = context;
    this_thread_runs().current = f;
    take_turn(*f);
}

void borrowed_target::acquire() { memory_ = block_cache::acquire(sizeof(bound_target)); }
void borrowed_target::release() noexcept { block_cache::release(memory_, sizeof(bound_target)); }
void* borrowed_target::bound_to(const borrowed_turn& turn) noexcept {
    context_node::keep(here_);
    auto* const b = ::new (std::exchange(memory_, nullptr)) bound_target{&turn, here_};
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(b) | bound_tag);
}

void borrowed_target::drop(future_core& c) noexcept {
    context_node::release(take_target(c).context);
}

void borrowed_target::take_turn(frame* f) noexcept {
    future_core& c = future_core::of(f);
    const bound_target target = take_target(c);
    run_in_fiber(c, *target.turn, target.context);
}

}  // namespace weft::detail
