// control: what weft knows of one coroutine, and the two inlined paths, resume and yield.
//
//            control (block_cache)                        stack (stack_source), from the first resume
//      +0   +----------------------------+               +---------------------+ <- stack.top
//           | pc  sp  bp  bx             | context       | weft_context_entry  |
//           | state flags | resumer      |               | enter, run<body>    |
//           | verbs       | stack.top    |               |   ... the body ...  |
//      +64  +----------------------------+               | yield               | <- sp
//           | stack.limit  source        |               +---------------------+
//           | id  extras  error  killing |                        ...
//           +----------------------------+               +---------------------+ <- stack.limit
//           | values on their way, body  | typed_control, body_block
//           +----------------------------+
//
// The control block is not on the stack: a coroutine that has not started has no stack, one that is
// over has given it back, and a shared stack holds nothing of weft's.
//
//      thread_block (one per thread)
//        current  -> the coroutine that runs here, null on a plain thread
//        resumer     the context that it yields to
//
// The resumer's context has a fixed address: a yield can begin to load from it at once, which is
// worth more than anything else in this file (docs/rationale.md). When a coroutine resumes another,
// its own resumer's context moves home while that lasts (into that party's control block, or `root`
// for the thread itself), so depth has no limit and every party in the chain can be found.
//
// Invariants:
// I1  state is running from the claim until the party that was switched to has stored another value,
//     so a coroutine is resumable only when its context is complete (release; pairs with the acquire
//     in claim and try_claim).
// I2  while a coroutine runs, its thread's `current` is that coroutine and `resumer` is where its
//     yield goes; whoever resumes restores both when control is back.
// I3  no address of a thread_block is used after a switch by the party that may have migrated; the
//     one that resumes never migrates while it waits.
// I4  stack is empty exactly in the states ready, done and killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>

#include "weft/base/assert.hpp"
#include "weft/base/tls.hpp"
#include "weft/context/annotated_context.hpp"
#include "weft/context/exception_state.hpp"
#include "weft/context/fp_environment.hpp"
#include "weft/stack/stack_source.hpp"

namespace weft {

class shared_stack_group;

enum class coroutine_state : std::uint8_t {
    empty,      // a handle without a coroutine
    ready,      // made, not started: it has no stack yet
    running,    // it runs, or it resumed another that runs
    suspended,  // it yielded
    done,       // its body returned or threw
    killed,     // it was killed before its body returned
};

namespace detail {

struct control;
struct kill_request;
struct coroutine_extras;
struct shared_slot;

// A coroutine's place on a shared stack.
struct shared_seat {
    shared_slot* slot;
    std::byte* saved;  // its live part while another runs there; null while it is in place
};

// What a typed coroutine tells the untyped core: one constant table per body type.
struct body_verbs {
    void (*run)(control*);                    // calls the body and destroys it; may throw
    void (*destroy_body)(control*) noexcept;  // of one that has not run, threw or was unwound
    void (*destroy_values)(control*) noexcept;  // null when that is nothing
    std::uint32_t block_bytes;
    std::uint32_t block_alignment;
    const void* signature;  // identifies Out(In)
};

enum control_flags : std::uint8_t {
    own_fp = 1,         // keeps its own floating-point environment
    on_shared_stack = 2,
    being_killed = 4,   // a kill is under way
};

struct alignas(cache_line_bytes) control : annotated_context {
    std::atomic<coroutine_state> state{coroutine_state::ready};  // I1
    std::uint8_t flags = 0;                // constant but for being_killed
    control* resumer = nullptr;            // who resumed it, null for a plain thread; while running
    const body_verbs* verbs;
    weft::stack stack;                     // I4
    union {
        stack_source source;               // where the stack comes from, or
        shared_seat seat;                  // on_shared_stack: what is kept for it
    };
    std::uint64_t id;
    coroutine_extras* extras = nullptr;    // name, private data, shared stack: what few have
    std::exception_ptr error;              // what left the body, until its resumer takes it
    kill_request* killing = nullptr;       // in the killer's frame, while being_killed

    control(const body_verbs& v, std::uint64_t i) noexcept : verbs(&v), source(), id(i) {}

    static control* of(context* c) noexcept {
        return static_cast<control*>(static_cast<annotated_context*>(c));
    }
    party who() const noexcept;
};

// Stands for the exception state of a thread not met before: not empty, so the rare path is taken,
// which prepares the thread. Saves a test on the frequent one.
extern exception_state unprepared;

struct thread_block {
    annotated_context resumer{};                // I2
    control* current = nullptr;                 // I2
    exception_state* exceptions = &unprepared;  // never null; the thread's own once it is prepared
    std::uint64_t next_id = 0;
    std::uint64_t last_id = 0;
    control* handing = nullptr;  // who called switch_to, until the next party has arrived
    annotated_context root{};  // the thread's context while a coroutine on it resumes another

    // Where the context of c's resumer is kept while c resumes another.
    annotated_context& home_of_resumer(const control& c) noexcept {
        return c.resumer != nullptr ? *c.resumer : root;
    }
};

}  // namespace detail
}  // namespace weft

WEFT_DECLARE_THREAD_LOCAL(weft::detail::thread_block, weft_tls_thread, this_thread);

namespace weft::detail {

// A request that a party brings when it resumes a coroutine: run(self) on top of its stack, in place
// of, or before, the return from its yield. It lives with whoever brings it.
struct on_top {
    void (*run)(on_top&, control& self, context* from);
};

// The word a coroutine leaves with, when it is over.
extern on_top over;

// The rare paths, in control.cpp.
WEFT_COLD bool lift_exceptions(thread_block& t, exception_state& into) noexcept;
WEFT_COLD void lower_exceptions(const exception_state& from) noexcept;
void claim_slowly(control* c, std::source_location place);
[[nodiscard]] bool try_claim(control* c);  // throws bad_alloc when there is no stack
void settle(control* who);                 // after the last switch: stack back, exception out
void run_on_top(control& self, arrival a);
[[noreturn]] void leave_for_good(control& c) noexcept;
annotated_context& enter_shared(control& c, thread_block& t);
annotated_context& leave_specially(control& c, thread_block& t);
[[noreturn]] WEFT_COLD void fail_outside(std::source_location place);
[[noreturn]] WEFT_COLD void fail_shared_fp(const control& c);
std::uint64_t more_ids(thread_block& t) noexcept;
void hand_over(control& next, std::source_location place);
void destroy_slowly(control* c);
std::size_t trim_stack(control* c) noexcept;
std::size_t high_water(const control* c) noexcept;
void refuse_shared_frame(const control& c, std::source_location place);
bool kill(control* c, std::source_location place);

inline std::uint64_t new_id() noexcept {
    thread_block& t = this_thread();
    if (t.next_id == t.last_id) [[unlikely]] return more_ids(t);
    return ++t.next_id;
}

// Takes the right to resume c; aborts when there is none. For one thread at a time.
WEFT_ALWAYS_INLINE void claim(control* c, std::source_location place) {
    if (c == nullptr || c->state.load(std::memory_order_acquire) != coroutine_state::suspended)
        [[unlikely]] claim_slowly(c, place);
    c->state.store(coroutine_state::running, std::memory_order_relaxed);
}

// Runs a claimed coroutine until it, or one it handed over to, yields or is over; that one is
// returned. `request` is null for an ordinary resume.
WEFT_ALWAYS_INLINE control* resume_claimed(control* c, on_top* request) {
    thread_block& t = this_thread();
    exception_state lifted;
    bool lift = false;
    if (t.exceptions->any()) [[unlikely]] lift = lift_exceptions(t, lifted);

    control* const outer = t.current;
    if (outer != nullptr) t.home_of_resumer(*outer) = t.resumer;
    c->resumer = outer;
    t.current = c;  // I2
    t.resumer.adopt_running();

    const std::uint8_t flags = c->flags;
    fp_control fp;
    if (WEFT_DEBUG || (flags & own_fp) != 0) fp = fp_control::read();
    annotated_context* target = c;
    if ((flags & on_shared_stack) != 0) [[unlikely]] target = &enter_shared(*c, t);

    const arrival a = annotated_switch(t.resumer, *target, request);

    control* const who = t.current;  // c, or the one that c handed over to
    t.current = outer;               // I2, I3
    if (outer != nullptr) t.resumer = t.home_of_resumer(*outer);
    if ((flags & own_fp) != 0) {
        fp.write();
    } else if (WEFT_DEBUG && !fp.same_control(fp_control::read())) {
        fail_shared_fp(*c);
    }
    if (lift) [[unlikely]] lower_exceptions(lifted);
    if (a.word != nullptr) [[unlikely]]
        settle(who);
    else
        who->state.store(coroutine_state::suspended, std::memory_order_release);  // I1
    return who;
}

// Suspends the coroutine that runs here, which is c.
WEFT_ALWAYS_INLINE void yield_from(control* c, thread_block& t) {
    const std::uint8_t flags = c->flags;
    annotated_context* target = &t.resumer;
    if ((flags & (on_shared_stack | being_killed)) != 0) [[unlikely]]
        target = &leave_specially(*c, t);
    exception_state lifted;
    bool lift = false;
    if (t.exceptions->any()) [[unlikely]] lift = lift_exceptions(t, lifted);
    fp_control fp;
    if ((flags & own_fp) != 0) fp = fp_control::read();

    const arrival a = annotated_switch(*c, *target, nullptr);

    if ((flags & own_fp) != 0) fp.write();  // I3: t is not used from here on
    if (lift) [[unlikely]] lower_exceptions(lifted);
    if (a.word != nullptr) [[unlikely]] run_on_top(*c, a);
}

}  // namespace weft::detail
