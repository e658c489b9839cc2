// resume and yield: the two switches of a coroutine, inlined where they are called.
//
// Each is one text that is compiled several times. The two frequent paths, inlined, differ in
// whether the floating-point environment is kept; the rare one, a function, moves exception state,
// and looks after kills, shared stacks and hand-overs. One test tells the first from the others.
// Few values live across a switch, because each costs a store and a load: what is constant on a
// path is a constant there.
//
//   resume: thread idle, c suspended, nothing in flight ---> run_held<bare | own_fp>
//           c begins, or a coroutine resumes it -----------> enter, switch, come_back
//           otherwise -------------------------------------> resume_rarely: refuses, all the rest
//   yield:  nothing in flight, c bare or keeping fp -------> leave<bare | own_fp>
//           the same, on a shared stack -------------------> leave<seated>
//           otherwise -------------------------------------> yield_rarely: unwinds, refuses
//
// leave<seated> is inlined as well, so that no frame more is to be copied out and in.
//
// The processor predicts each `ret` by a stack of the calls it has seen, which knows nothing of
// switches. So none of these paths but the rare ones is in a call while it switches: a first turn,
// and one that nests, is a call before the switch and a call behind it, each of which has returned.
#pragma once

#include <source_location>

#include "weft/context/fp_environment.hpp"
#include "weft/coroutine/control.hpp"
#include "weft/coroutine/thread_block.hpp"

namespace weft::detail {

// A request that a party brings when it resumes a coroutine: run(self) on top of its stack, in
// place of, or before, the return from its yield. It lives with whoever brings it.
struct on_top {
    void (*run)(on_top&, control& self, context* from);
};

// The words a coroutine leaves with: when it is over, and when it was entered by switch_to.
extern on_top over;
extern on_top introduced;
// The word a resume gets back when there is no memory to copy out what lies on the coroutine's
// stack.
extern on_top no_room;

// How a coroutine is run, or left. The first three know that nothing is in flight, the first two
// also that the thread itself resumes. seated: it leaves a shared stack; tried: rare, but it stays
// held if it yields.
enum class path { bare, own_fp, seated, rare, tried };

// What a resume that begins or nests keeps in its frame while the coroutine runs.
struct nesting {
    running_party before;
    state_word::bits suspended;  // what the word goes back to if it yields
    fp_control fp;               // the resumer's
};

// Makes c running, with a stack, and the thread ready to switch to it from its block's resumer,
// which is returned: an allocator that suspends the caller may have gone on elsewhere (T2). Null,
// and nothing has changed, where c is not ready or suspended, or anything rare is about it. Throws
// bad_alloc when there is no stack, and nothing has changed.
thread_block* enter(control& c, thread_block& t, nesting& n);
// Behind that switch, with the word that it brought. c is what was entered; the party that came
// back is returned, as of a resume.
control* come_back(control& c, const nesting& n, void* word, thread_block& t);

// The rare paths and their parts, in resume.cpp.
control* resume_rarely(control* c, on_top* request, std::source_location place);
void yield_rarely(thread_block& t, std::source_location place);
[[nodiscard]] bool try_hold(control* c);  // throws bad_alloc when there is no stack
control* resume_held(control* c);         // after try_hold
// The same, but one that yielded stays held until its value was taken and its word set: once it is
// suspended, another thread may resume it and put the next value there.
control* resume_held_for_value(control* c);
bool lift_exceptions(thread_block& t, exception_state& into) noexcept;
void lower_exceptions(const exception_state& from) noexcept;
annotated_context& enter_shared(control& c, thread_block& t);
annotated_context& leave_shared(control& c, thread_block& t);
annotated_context& leave_rarely(control& c, thread_block& t);
on_top* word_of_leaving(control& c) noexcept;
control* settle(control* who, void* word);  // when the word is not null: stack back, exception out
// Takes words, not the arrival: an argument in memory would be written to the stack at every
// landing.
void run_on_top(control& self, void* word, context* from);
annotated_context& leave_shared_for_good(control& c, thread_block& t);
void hand_over(control* next, std::source_location place);
// Suspends `outer`, which resumed the coroutine that runs here, directly or through others: all of
// them stay as they are, and go on here when outer is resumed. On one thread. A kill of outer
// throws outer_killed here, which unwinds what stands on it, and then itself.
struct outer_killed {};
void suspend_outer(control& outer);
[[noreturn]] WEFT_COLD void fail_empty(std::source_location place);
[[noreturn]] WEFT_COLD void fail_outside(std::source_location place);
[[noreturn]] WEFT_COLD void fail_shared_fp(const control& c);

// Of a resume that a word came back to: what it resumed may have handed over. In a chain that began
// with one that has no environment of its own, the resumer keeps none, and one of the others may
// have changed it.
WEFT_ALWAYS_INLINE control* party_that_came(thread_block& t, bool keeps_fp) {
    control* const c = t.running.party();
    if (!keeps_fp && c->word.has(handed)) c->fp_of_resumer.write();
    return c;
}

// Runs a coroutine that is held running until it, or one it handed over to, yields or is over; that
// one is returned. `suspended` is what its word goes back to if it yields.
template <path p>
WEFT_ALWAYS_INLINE control* run_held(control* c, on_top* request, thread_block& t,
                                     state_word::bits suspended) {
    constexpr bool rare = p == path::rare || p == path::tried;
    constexpr bool alone = !rare;
    exception_state lifted;
    const bool lift = rare && t.exceptions->bits() != 0 && lift_exceptions(t, lifted);
    const running_party before = alone ? running_party(running_party::none) : t.running;
    control* const outer = before.party();
    if (outer != nullptr) t.home_of_resumer(*outer) = t.resumer;
    if (!alone) c->resumer = outer;               // I3
    t.running = running_party::of(c, suspended);  // T1
    t.resumer.adopt_running();
    const bool keep_fp = rare ? (suspended & own_fp) != 0 : p == path::own_fp;
    fp_control fp;
    if (WEFT_DEBUG || keep_fp) fp.read();

    annotated_context& target =
        rare && (suspended & on_shared_stack) != 0 ? enter_shared(*c, t) : *c;

    const arrival a = annotated_switch(t.resumer, target, request);

    thread_block& same = thread_block::of(*a.self);  // T2; t itself, but in a register already
    if (a.word != nullptr) [[unlikely]]
        c = party_that_came(same, keep_fp);
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

// Resumes c, or ends the program where there is nothing to resume. `request` is null for an
// ordinary resume.
WEFT_ALWAYS_INLINE control* resume(control* c, on_top* request, std::source_location place) {
    constexpr auto suspended = state_word::of(coroutine_state::suspended);
    constexpr auto keeping = state_word::of(coroutine_state::suspended, own_fp);
    if (c == nullptr) [[unlikely]]
        fail_empty(place);
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
        if (here == nullptr) return resume_rarely(c, request, place);
        const arrival a = annotated_switch(here->resumer, *c, request);
        return come_back(*c, n, a.word, thread_block::of(*a.self));  // T2
    }
    c->word.hold(state_word::of(coroutine_state::running, own_fp));
    return run_held<path::own_fp>(c, request, t, keeping);
}

// Suspends c, which runs here.
template <path p>
WEFT_ALWAYS_INLINE void leave(control* c, thread_block& t) {
    constexpr bool rare = p == path::rare;
    constexpr bool seated = p == path::seated;
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

    // T2: t is not used from here on. Nor is c: it came back in a register, and what is not kept
    // for later is not written to the stack, whose page may have left the TLB.
    control& self = *control::of(a.self);
    if (keeps_fp(self)) self.fp.write();
    if (lift) lower_exceptions(lifted);
    if (a.word != nullptr) [[unlikely]]
        run_on_top(self, a.word, a.from);
}

// Leaves the coroutine that runs here and is over. Inlined, because a call that never returns would
// leave the processor's predictor of returns one step off for all that the resumer does next.
[[noreturn]] WEFT_ALWAYS_INLINE void leave_for_good(thread_block& t) noexcept {
    control& c = *t.running.party();
    annotated_context& target =
        c.word.has(on_shared_stack) ? leave_shared_for_good(c, t) : t.resumer;
    annotated_switch_last(c, target, &over);
}

// Suspends the coroutine that runs here, or ends the program where none does.
WEFT_ALWAYS_INLINE void yield(std::source_location place) {
    thread_block& t = this_thread();
    const running_party running = t.running;
    const std::uint64_t unusual = t.exceptions->bits() | running.tags();
    if (unusual == 0) return leave<path::bare>(running.party(running_party::bare), t);
    if (unusual == running_party::keeps_fp) [[likely]]
        return leave<path::own_fp>(running.party(running_party::keeps_fp), t);
    if (unusual != running_party::seated) return yield_rarely(t, place);
    leave<path::seated>(running.party(running_party::seated), t);
}

}  // namespace weft::detail
