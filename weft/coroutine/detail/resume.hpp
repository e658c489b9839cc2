// resume and yield: the two switches of a coroutine, inlined where they are called.
//
// Each is one template that is compiled several times. The two frequent paths are inlined; they
// differ in whether the floating-point environment is kept. The rare path is a function that also
// moves exception state and handles kills, shared stacks and switch_to. One test separates the
// first path from the others. Few values live across a switch, because each costs a store and a
// load: a value that is constant on a path is a compile-time constant there.
//
//   resume: thread idle, c suspended, nothing in flight ---> run_held<bare | own_fp>
//           c begins, or a coroutine resumes it -----------> enter, switch, come_back
//           otherwise -------------------------------------> resume_rarely: refuses, or all else
//   yield:  nothing in flight, c bare or keeping fp -------> leave<bare | own_fp>
//           the same, on a shared stack -------------------> leave<shared_stack>
//           otherwise -------------------------------------> yield_rarely: unwinds, refuses
//
// leave<shared_stack> is inlined as well, so that there is no further frame to copy out and in.
//
// A third one leads from one coroutine to another: continue_instead().
//
// The processor predicts each `ret` from a stack of the calls it has seen, and switches are not
// recorded there. So, except on the rare paths, no call is open across a switch: the first turn,
// and a turn that nests, make one call before the switch and one after it, and each returns.
#pragma once

#include <source_location>
#include <system_error>

#include "weft/context/fp_environment.hpp"
#include "weft/coroutine/detail/control.hpp"
#include "weft/coroutine/detail/on_top.hpp"
#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/coroutine/detail/thread_block.hpp"

namespace weft::detail {

// How a coroutine is run, or left. On the first three no exception is in flight, on the first two
// the thread itself is the resumer. shared_stack: the coroutine leaves one. tried: as rare,
// but the coroutine stays held if it yields.
enum class path { bare, own_fp, shared_stack, rare, tried };

// What the frame of a resume that starts or nests keeps while the coroutine runs.
struct nesting {
    running_coroutine before;
    state_word::bits suspended;  // the state word that is stored if it yields
    fp_control fp;               // the resumer's
};

// Makes c running, with a stack, and prepares the thread to switch to c from its block's resumer.
// Returns that block: the allocator may suspend the caller, which may then resume on another thread
// (T2). Returns null, without effect, if c is neither ready nor suspended, or needs the rare path.
// Throws bad_alloc, without effect, if there is no stack.
thread_block* enter(control& c, thread_block& t, nesting& n);
// Called after that switch, with the word that it brought. Returns the coroutine that came back, as
// resume() does.
control* come_back(const nesting& n, void* word, thread_block& t);

// The rare paths and their parts, in resume.cpp.
control* resume_rarely(control* c, on_top* request, std::source_location caller);
void yield_rarely(thread_block& t, std::source_location caller);
[[nodiscard]] bool try_hold(control* c);            // throws bad_alloc if there is no stack
std::errc why_not_held(const control* c) noexcept;  // after a try_hold that returned false
control* resume_held(control* c);                   // after one that returned true
// The same, but a coroutine that yielded stays held until its value is taken and its word set: once
// it is suspended, another thread may resume it and put the next value there.
control* resume_held_for_value(control* c);
bool lift_exceptions(thread_block& t, exception_state& into) noexcept;
void lower_exceptions(const exception_state& from) noexcept;
annotated_context& leave_rarely(control& c, thread_block& t);
on_top* word_of_leaving(control& c) noexcept;
control* settle(control* who, void* word);  // word not null: releases the stack, throws the error
// Takes words and not the arrival: an argument in memory would be written to the stack at every
// arrival.
void run_on_top(control& self, void* word, context* from);
void hand_over(control* next, std::source_location caller);
// Suspends `outer`, which resumed the coroutine that runs here, directly or through others. All of
// them stay as they are, and execution continues here when outer is resumed. On one thread. A kill
// of outer throws outer_killed here, which unwinds the coroutines that outer resumed, and then
// outer.
struct outer_killed {};
void suspend_outer(control& outer);
[[noreturn]] WEFT_COLD void fail_empty(std::source_location caller);
[[noreturn]] WEFT_COLD void fail_outside(std::source_location caller);
[[noreturn]] WEFT_COLD void fail_shared_fp(const control& c);

// For a resume that gets a word back: the coroutine that it resumed may have called switch_to. In a
// chain that began with a coroutine without its own floating-point environment the resumer keeps
// none, and a later coroutine of the chain may have changed it.
WEFT_ALWAYS_INLINE control* coroutine_that_came(thread_block& t, bool keeps_fp) {
    control* const c = t.running.get();
    if (!keeps_fp && c->word.has(handed)) c->fp_of_resumer.write();
    return c;
}

// Runs a coroutine that is held, until it, or the last of a chain of switch_to, yields or is done;
// returns that coroutine. `suspended` is the state word that is stored if it yields.
template <path p>
WEFT_ALWAYS_INLINE control* run_held(control* c, on_top* request, thread_block& t,
                                     state_word::bits suspended) {
    constexpr bool rare = p == path::rare || p == path::tried;
    constexpr bool alone = !rare;
    exception_state lifted;
    const bool lift = rare && t.exceptions->bits() != 0 && lift_exceptions(t, lifted);
    const running_coroutine before = alone ? running_coroutine(running_coroutine::none) : t.running;
    control* const outer = before.get();
    if (outer != nullptr) t.home_of_resumer(*outer) = t.resumer;
    if (!alone) c->resumer = outer;                   // I3
    t.running = running_coroutine::of(c, suspended);  // T1
    t.resumer.adopt_running();
    const bool keep_fp = rare ? (suspended & own_fp) != 0 : p == path::own_fp;
    fp_control fp;
    if (WEFT_DEBUG || keep_fp) fp.read();

    annotated_context& target =
        rare && (suspended & on_shared_stack) != 0 ? enter_shared(*c, t) : *c;

    const arrival a = annotated_switch(t.resumer, target, request);

    thread_block& same = thread_block::of(*a.self);  // T2; it is t, but already in a register
    // It may be another one than was resumed, see continue_instead().
    c = alone ? same.running.get(p == path::own_fp ? running_coroutine::keeps_fp
                                                   : running_coroutine::bare)
              : same.running.get();
    if (a.word != nullptr) [[unlikely]]
        c = coroutine_that_came(same, keep_fp);
    same.running = before;  // T1
    if (outer != nullptr) same.resumer = same.home_of_resumer(*outer);
    if (!alone) c->resumer = nullptr;  // I3
    if (keep_fp) fp.write();
    if (WEFT_DEBUG && !keep_fp && !fp.is_current()) fail_shared_fp(*c);
    if (lift) lower_exceptions(lifted);
    if (a.word != nullptr) [[unlikely]]
        return settle(c, a.word);
    if (p != path::tried) c->word.set_all(suspended);  // I1
    return c;
}

// Resumes c, or aborts the program if there is nothing to resume. `request` is null for an ordinary
// resume.
WEFT_ALWAYS_INLINE control* resume(control* c, on_top* request, std::source_location caller) {
    constexpr auto suspended = state_word::of(coroutine_state::suspended);
    constexpr auto keeping = state_word::of(coroutine_state::suspended, own_fp);
    if (c == nullptr) [[unlikely]]
        fail_empty(caller);
    thread_block& t = this_thread();
    const std::uint64_t unusual = t.exceptions->bits() | t.running.unlike_none() |
                                  static_cast<std::uint64_t>(c->word.load() ^ suspended);
    if (unusual == 0) {
        c->word.hold(state_word::of(coroutine_state::running));
        return run_held<path::bare>(c, request, t, suspended);
    }
    if (unusual != (suspended ^ keeping)) [[unlikely]] {
        nesting n;
        thread_block* const here = enter(*c, t, n);
        if (here == nullptr) return resume_rarely(c, request, caller);
        const arrival a = annotated_switch(here->resumer, *c, request);
        return come_back(n, a.word, thread_block::of(*a.self));  // T2
    }
    c->word.hold(state_word::of(coroutine_state::running, own_fp));
    return run_held<path::own_fp>(c, request, t, keeping);
}

// Suspends c, which runs here.
template <path p>
WEFT_ALWAYS_INLINE void leave(control* c, thread_block& t) {
    constexpr bool rare = p == path::rare;
    constexpr bool seated = p == path::shared_stack;
    annotated_context& target = rare     ? leave_rarely(*c, t)
                                : seated ? leave_shared(*c, t)
                                         : t.resumer;
    exception_state lifted;
    const bool lift = rare && t.exceptions->bits() != 0 && lift_exceptions(t, lifted);
    const auto keeps_fp = [](const control& who) {
        return rare || seated ? who.word.has(own_fp) : p == path::own_fp;
    };
    if (keeps_fp(*c)) c->fp.read();

    const arrival a = annotated_switch(*c, target, rare ? word_of_leaving(*c) : nullptr);

    // T2: t is not used from here on. Nor is c: it came back in a register, and a value that is not
    // needed later is not written to the stack, whose page may have left the TLB.
    control& self = *control::of(a.self);
    if (keeps_fp(self)) self.fp.write();
    if (lift) lower_exceptions(lifted);
    if (a.word != nullptr) [[unlikely]]
        run_on_top(self, a.word, a.from);
}

// Leaves the coroutine that runs here and is done. Inlined, because a call that never returns would
// leave the processor's return predictor one entry off for all that the resumer does next.
[[noreturn]] WEFT_ALWAYS_INLINE void leave_for_good(thread_block& t) noexcept {
    control& c = *t.running.get();
    annotated_context& target =
        c.word.has(on_shared_stack) ? leave_shared_for_good(c, t) : t.resumer;
    annotated_switch_last(c, target, &over);
}

// Whether the coroutine that runs here may be suspended by continue_instead(next): the thread
// itself has resumed it, no exception is in flight, and next is suspended and is left in the same
// frequent way. A debug build checks the shared floating-point environment where a resume returns,
// so there no coroutine that shares it is left otherwise.
WEFT_ALWAYS_INLINE bool may_continue_instead(const control& next) noexcept {
    const thread_block& t = this_thread();
    const std::uint64_t unusual = t.exceptions->bits() | t.running.tags();
    if (unusual != running_coroutine::keeps_fp && (WEFT_DEBUG || unusual != 0)) return false;
    const int flags = unusual != 0 ? int{own_fp} : 0;
    return t.running.get()->resumer == nullptr &&
           next.word.load() == state_word::of(coroutine_state::suspended, flags);
}

// Suspends the coroutine that runs here and continues `next` in its place: when next yields or is
// done, it comes back to the resumer, as if that one had resumed it. The two contexts trade places
// and the resumer's stays where it is:
//
//     resumer <---- c, here      next, suspended        resumer <---- next      c, suspended
//
// Precondition: may_continue_instead(next). Until control has left c it is marked as suspended and
// its context is incomplete: so nothing but what this thread runs may resume c (compare I1).
WEFT_ALWAYS_INLINE void continue_instead(control& next) {
    thread_block& t = this_thread();
    control& c = *t.running.get();
    const bool keeps_fp = t.running.tags() != 0;
    const int flags = keeps_fp ? int{own_fp} : 0;
    if (keeps_fp) c.fp.read();
    c.word.set_all(state_word::of(coroutine_state::suspended, flags));
    next.word.hold(state_word::of(coroutine_state::running, flags));
    t.running = running_coroutine::plain(&next, next.word.load());  // T1

    const arrival a = annotated_switch(c, next, nullptr);

    control& self = *control::of(a.self);
    if (self.word.has(own_fp)) self.fp.write();
    if (a.word != nullptr) [[unlikely]]
        run_on_top(self, a.word, a.from);
}

// Suspends the coroutine that runs here, or aborts the program if there is none.
WEFT_ALWAYS_INLINE void yield(std::source_location caller) {
    thread_block& t = this_thread();
    const running_coroutine running = t.running;
    const std::uint64_t unusual = t.exceptions->bits() | running.tags();
    if (unusual == 0) return leave<path::bare>(running.get(running_coroutine::bare), t);
    if (unusual == running_coroutine::keeps_fp) [[likely]]
        return leave<path::own_fp>(running.get(running_coroutine::keeps_fp), t);
    if (unusual != running_coroutine::seated) return yield_rarely(t, caller);
    leave<path::shared_stack>(running.get(running_coroutine::seated), t);
}

}  // namespace weft::detail
