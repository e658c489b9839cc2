#include "weft/coroutine/detail/resume.hpp"

#include <exception>
#include <new>
#include <utility>

#include "weft/coroutine/detail/overflow_report.hpp"
#include "weft/stack/detail/asan_stack.hpp"
#include "weft/stack/detail/near_stacks.hpp"
#include "weft/stack/detail/valgrind.hpp"

namespace weft::detail {

namespace {

[[noreturn]] WEFT_COLD void refuse(const control& c, coroutine_state s,
                                   std::source_location caller) {
    switch (s) {
        case coroutine_state::running:
            fail("resume of a running coroutine", c.info(), caller);
        case coroutine_state::done:
            fail("resume of a finished coroutine", c.info(), caller);
        case coroutine_state::killed:
            fail("resume of a killed coroutine", c.info(), caller);
        default:
            fail("resume of a coroutine whose memory is damaged", c.info(), caller);
    }
}

// Prepares c to start on its own stack s.
WEFT_ALWAYS_INLINE void begin_on(control& c, weft::stack s) noexcept {
    c.stack = s;
    valgrind_stack::begin(s);
    c.make(s.limit, s.top, c.verbs->entry);
}

// Gives a ready coroutine its stack. Returns false, without effect, if there is none.
WEFT_ALWAYS_INLINE bool start(control& c, int flags) noexcept {
    const weft::stack s =
        (flags & on_shared_stack) != 0 ? shared_slot_stack(*c.seat.slot) : c.source.acquire();
    if (!s) return false;
    c.stack = s;
    // On a shared stack the exchange does this, once no other live part is there.
    if ((flags & on_shared_stack) == 0) begin_on(c, s);
    return true;
}

[[noreturn]] WEFT_COLD void throw_no_stack(const control& c) {
#if WEFT_EXCEPTIONS
    static_cast<void>(c);
    throw std::bad_alloc();
#else
    fail("no stack for a coroutine", c.info(), unknown_caller);
#endif
}

}  // namespace

bool lift_exceptions(thread_block& t, exception_state& into) noexcept {
    if (t.exceptions == &unprepared) {
        t.exceptions = &thread_exception_state();
        prepare_overflow_report();
    }
    if (t.exceptions->bits() == 0) return false;
    into = t.exceptions->take();
    return true;
}

void lower_exceptions(const exception_state& from) noexcept { *this_thread().exceptions = from; }

namespace {

// For one thread at a time: takes the right to run c, or aborts the program. Returns c's flags.
WEFT_ALWAYS_INLINE int hold(control& c, std::source_location caller) {
    const state_word::bits word = c.word.load();
    const int flags = state_word::flags(word) & ~handed;
    if (const coroutine_state s = state_word::state(word); s != coroutine_state::suspended) {
        if (s != coroutine_state::ready) refuse(c, s, caller);
        if (!start(c, flags)) throw_no_stack(c);
    }
    c.word.hold(state_word::of(coroutine_state::running, flags));
    return flags;
}

}  // namespace

WEFT_NOINLINE control* resume_rarely(control* c, on_top* request, std::source_location caller) {
    const int flags = hold(*c, caller);
    return run_held<path::rare>(c, request, this_thread(),
                                state_word::of(coroutine_state::suspended, flags));
}

namespace {

// c is ready and has its stack, or is suspended; its flags are none, or own_fp.
WEFT_ALWAYS_INLINE thread_block* enter_started(control& c, thread_block& t, nesting& n) noexcept {
    constexpr auto bits = [](coroutine_state s) { return static_cast<unsigned>(s); };
    constexpr unsigned ready = bits(coroutine_state::ready);
    constexpr unsigned running = bits(coroutine_state::running);
    constexpr unsigned suspended = bits(coroutine_state::suspended);
    static_assert((ready | suspended) == suspended && (suspended & running) == running);
    const unsigned word = c.word.load() | suspended;  // the flags stay
    n.suspended = static_cast<state_word::bits>(word);
    c.word.hold(static_cast<state_word::bits>(word ^ suspended ^ running));
    const running_coroutine before = t.running;
    control* const outer = before.get();
    if (outer != nullptr) t.home_of_resumer(*outer) = t.resumer;
    n.before = before;
    c.resumer = outer;                                      // I3
    t.running = running_coroutine::plain(&c, n.suspended);  // T1
    t.resumer.adopt_running();
    if (WEFT_DEBUG || (word & own_fp) != 0) n.fp.read();
    return &t;
}

WEFT_COLD thread_block* enter_by_call(control& c, nesting& n) {
    const weft::stack s = c.source.acquire();
    if (!s) throw_no_stack(c);
    begin_on(c, s);
    return enter_started(c, this_thread(), n);  // T2: the allocator may have suspended
}

}  // namespace

// Makes no call, except as its last step: a call would cost the frequent path every register that
// lives across it.
WEFT_NOINLINE thread_block* enter(control& c, thread_block& t, nesting& n) {
    if (t.exceptions->bits() != 0) [[unlikely]]
        return nullptr;
    const int but_fp = c.word.load() & ~own_fp;
    if (but_fp == state_word::of(coroutine_state::ready)) {
        const weft::stack s = take_near(c.source);
        if (!s) [[unlikely]]
            return enter_by_call(c, n);
        begin_on(c, s);
    } else if (but_fp != state_word::of(coroutine_state::suspended)) [[unlikely]] {
        return nullptr;
    }
    return enter_started(c, t, n);
}

WEFT_NOINLINE control* come_back(const nesting& n, void* word, thread_block& t) {
    control* c = t.running.get();
    if (word != nullptr) c = coroutine_that_came(t, (n.suspended & own_fp) != 0);
    const running_coroutine before = n.before;
    t.running = before;  // T1
    if (const control* const outer = before.get(); outer != nullptr)
        t.resumer = t.home_of_resumer(*outer);
    c->resumer = nullptr;  // I3
    if ((n.suspended & own_fp) != 0)
        n.fp.write();
    else if (WEFT_DEBUG && !n.fp.is_current())
        fail_shared_fp(*c);
    if (word != nullptr) return settle(c, word);
    c->word.set_all(n.suspended);  // I1
    return c;
}

bool try_hold(control* c) {
    if (c == nullptr) return false;
    if (c->word.claim(coroutine_state::suspended)) return true;
    if (!c->word.claim(coroutine_state::ready)) return false;
    if (start(*c, state_word::flags(c->word.load()))) return true;
    c->word.set(coroutine_state::ready);
    throw_no_stack(*c);
}

std::errc why_not_held(const control* c) noexcept {
    const bool is_over = c == nullptr || c->word.state() == coroutine_state::done ||
                         c->word.state() == coroutine_state::killed;
    return is_over ? std::errc::operation_not_permitted : std::errc::resource_unavailable_try_again;
}

namespace {

template <path p>
WEFT_ALWAYS_INLINE control* resume_tried(control* c) {
    const int flags = state_word::flags(c->word.load()) & ~handed;
    c->word.hold(state_word::of(coroutine_state::running, flags));
    return run_held<p>(c, nullptr, this_thread(),
                       state_word::of(coroutine_state::suspended, flags));
}

}  // namespace

WEFT_NOINLINE control* resume_held(control* c) { return resume_tried<path::rare>(c); }
WEFT_NOINLINE control* resume_held_for_value(control* c) { return resume_tried<path::tried>(c); }

WEFT_NOINLINE void yield_rarely(thread_block& t, std::source_location caller) {
    control* c = t.running.get();
    if (c == nullptr) fail_outside(caller);
    leave<path::rare>(c, t);
}

annotated_context& leave_rarely(control& c, thread_block& t) {
    if (c.word.has(being_killed)) c.killing->again(c);
    return c.word.has(on_shared_stack) ? leave_shared(c, t) : t.resumer;
}

on_top* word_of_leaving(control& c) noexcept { return c.word.has(handed) ? &introduced : nullptr; }

namespace {

// An exception that left the body is thrown by the resume.
WEFT_ALWAYS_INLINE control* pass_error(control* c) {
#if WEFT_EXCEPTIONS
    if (c->error) [[unlikely]]
        std::rethrow_exception(std::exchange(c->error, nullptr));
#endif
    return c;
}

// If there is no memory to copy out the live part that is on its stack, a coroutine keeps its
// state; if it has started, its live part is copied out.
[[noreturn]] WEFT_COLD void refuse_without_room(control& c, int flags) {
    if ((flags & being_killed) != 0)  // most are killed by their destructor
        fail("out of memory: no room on its shared stack for a coroutine that is killed", c.info(),
             c.killing->caller);
    const bool began = c.seat.saved != nullptr;
    if (!began) c.stack = {};  // I2
    c.word.set_all(state_word::of(began ? coroutine_state::suspended : coroutine_state::ready,
                                  flags));  // I1
    throw_no_stack(c);
}

WEFT_NOINLINE control* settle_rarely(control* c, void* word, int flags) {
    if (word == &introduced) {
        c->word.set(coroutine_state::suspended);  // I1
        return c;
    }
    if (word == &no_room) [[unlikely]]
        refuse_without_room(*c, flags);
    c->retire();
    if ((flags & on_shared_stack) == 0) {
        valgrind_stack::end(c->stack);
        unpoison_stack(c->stack);  // its first frame never returned
        c->source.release(c->stack);
    }
    c->stack = {};
    const bool killed = (flags & being_killed) != 0 && c->killing->unwound;
    c->word.set_all(state_word::of(killed ? coroutine_state::killed : coroutine_state::done,
                                   flags & ~(being_killed | handed)));  // I1
    return pass_error(c);
}

}  // namespace

// A coroutine came back with a word: it was entered by switch_to, or it is done, or there was no
// memory. Makes no call, except as its last step, as enter().
WEFT_NOINLINE control* settle(control* c, void* word) {
    const int flags = state_word::flags(c->word.load());
    if ((flags & ~own_fp) != 0 || c->error) [[unlikely]]
        return settle_rarely(c, word, flags);
    c->retire();
    valgrind_stack::end(c->stack);
    if (!put_near(c->source, c->stack)) [[unlikely]]
        return settle_rarely(c, word, flags);
    c->stack.top = nullptr;                                         // I2
    c->word.set_all(state_word::of(coroutine_state::done, flags));  // I1
    return c;
}

void run_on_top(control& self, void* word, context* from) {
    auto* request = static_cast<on_top*>(word);
    request->run(*request, self, from);
}

void fail_empty(std::source_location caller) { fail("resume of an empty coroutine", {}, caller); }

void fail_outside(std::source_location caller) {
    fail("yield outside a coroutine", {"thread", 0, nullptr}, caller);
}

void fail_shared_fp(const control& c) {
    fail(
        "a coroutine changed the floating-point environment and suspended under "
        "fp_environment::shared",
        c.info());
}

namespace {

// Runs where a switch_to arrives: marks the coroutine that called it as suspended.
void settle_handing(on_top&, control&, context*) {
    this_thread().handing->word.set(coroutine_state::suspended);  // I1
}
on_top handed_over{settle_handing};

}  // namespace

void hand_over(control* to, std::source_location caller) {
    if (to == nullptr) fail("switch_to an empty coroutine", {}, caller);
    control& next = *to;
    control* c = current();
    if (c == nullptr) fail("switch_to outside a coroutine", next.info(), caller);
    if (c->word.has(on_shared_stack) || next.word.has(on_shared_stack))
        fail("switch_to with a coroutine on a shared stack", next.info(), caller);
    if (c->word.has(being_killed)) c->killing->again(*c);
    if (c->verbs->signature != next.verbs->signature)
        fail("switch_to a coroutine of another signature", next.info(), caller);
    hold(next, caller);
    thread_block& t = this_thread();  // T2: the allocator may have suspended
    exception_state lifted;
    const bool lift = t.exceptions->bits() != 0 && lift_exceptions(t, lifted);
    const bool keep_fp = c->word.has(own_fp);
    fp_control fp;
    fp.read();
    next.resumer = std::exchange(c->resumer, nullptr);  // I3
    next.fp_of_resumer = c->word.has(handed) ? c->fp_of_resumer : fp;
    next.word.raise(handed);
    t.running = running_coroutine::of(&next, next.word.load());  // T1
    t.handing = c;

    const arrival a = annotated_switch(*c, next, &handed_over);

    if (keep_fp) fp.write();
    if (lift) lower_exceptions(lifted);
    if (a.word != nullptr) run_on_top(*c, a.word, a.from);
}

namespace {

// Whether c was resumed by `outer`, directly or through others, and none of them is on a shared
// stack.
bool stands_on(const control* c, const control& outer) noexcept {
    for (; c != nullptr; c = c->resumer) {
        if (c->word.has(on_shared_stack)) return false;
        if (c == &outer) return true;
    }
    return false;
}

[[noreturn]] WEFT_COLD void throw_killed(const control& outer) {
#if WEFT_EXCEPTIONS
    static_cast<void>(outer);
    throw outer_killed();
#else
    fail("kill of a coroutine that waits in another, without exceptions", outer.info(),
         unknown_caller);
#endif
}

}  // namespace

// Its resumer sees outer as if it had yielded: until outer is resumed, its context is the one saved
// here.
//
//     resumer <---- outer <---- ... <---- c, here          resumer <---- outer = here
//             t.root            t.resumer                          t.resumer
void suspend_outer(control& outer) {
    thread_block& t = this_thread();
    control* c = t.running.get();
    if (!stands_on(c, outer))
        fail("a wait of a coroutine that did not resume the caller, or shares its stack",
             outer.info(), unknown_caller);
    const annotated_context resumer = t.resumer;
    const running_coroutine running = t.running;
    const annotated_context context_of_outer = outer;
    exception_state lifted;
    const bool lift = t.exceptions->bits() != 0 && lift_exceptions(t, lifted);
    fp_control fp;
    fp.read();
    t.resumer = t.home_of_resumer(outer);
    t.running = running_coroutine::of(&outer, outer.word.load());  // T1
    static_cast<annotated_context&>(outer) = *c;  // for the sanitizers: the stack that is left

    const arrival a = annotated_switch(outer, t.resumer, nullptr);

    thread_block& same = this_thread();
    fp.write();
    same.home_of_resumer(outer) = same.resumer;
    same.resumer = resumer;
    same.running = running;  // T1
    static_cast<annotated_context&>(outer) = context_of_outer;
    if (lift) lower_exceptions(lifted);
    if (a.word != nullptr) throw_killed(outer);
}

}  // namespace weft::detail
