// shared_slot: the record of one shared stack, and what a resume and a yield call for a coroutine
// on it.
#pragma once

#include <cstddef>
#include <source_location>

#include "weft/coroutine/detail/control.hpp"
#include "weft/coroutine/detail/thread_block.hpp"

namespace weft::detail {

struct shared_group;

// One shared stack.
// Invariants:
// S1  occupant is the coroutine whose live part is in place, null if there is none: every other
//     started coroutine with a seat here has `saved` set.
// S2  a coroutine that leaves restores the coroutine that it displaced while that one was running:
//     the nearest of its resumers that has a seat here.
struct shared_slot {
    shared_group* group = nullptr;
    weft::stack stack;
    control* occupant = nullptr;   // S1
    std::byte* vacated = nullptr;  // [vacated, stack.top) holds the pattern; debug builds
};

void take_seat(control& c, shared_stack_group& group);
// Called at the coroutine's destruction at the latest; a second call has no effect.
void give_up_seat(control& c) noexcept;

// The slot's stack; empty if there is no memory. It may still have another coroutine's live part.
weft::stack shared_slot_stack(shared_slot& slot) noexcept;

// The stack size that the group was made with.
std::size_t shared_stack_bytes(const shared_slot& slot) noexcept;

// The context to switch to in order to enter c: c itself if its live part is in place or has been
// restored; else the copier, which restores it and switches to c, or comes back with no_room,
// without effect. c is already t.running.
annotated_context& enter_shared(control& c, thread_block& t);

// The same for leaving c, towards its resumer. c's context is saved by the switch that follows.
annotated_context& leave_shared(control& c, thread_block& t);
annotated_context& leave_shared_for_good(control& c, thread_block& t);

// Aborts if c and the running coroutine have the same stack: a request in the frame of one would be
// copied out before the other sees it.
void refuse_shared_frame(const control& c, std::source_location caller);

}  // namespace weft::detail
