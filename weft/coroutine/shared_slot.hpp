// What the core of the coroutine layer calls for a coroutine on a shared stack, and the parts of
// it.
#pragma once

#include "weft/coroutine/resume.hpp"
#include "weft/coroutine/shared_stack_group.hpp"

namespace weft::detail {

// One common stack.
// Invariants:
// S1  occupant is the coroutine whose live part is in place, null when none is: every other started
//     coroutine with a seat here has `saved` set.
// S2  a coroutine that leaves brings back the one that it displaced while that one ran: the nearest
//     of its resumers that has a seat here.
struct shared_slot {
    shared_group* group = nullptr;
    weft::stack stack;
    control* occupant = nullptr;   // S1
    std::byte* vacated = nullptr;  // [vacated, stack.top) holds the pattern; debug builds
};

void take_seat(control& c, shared_stack_group& group);
// By its end at the latest; once is enough.
void give_up_seat(control& c) noexcept;

// The slot's stack, cleared of the coroutine before; empty when there is no memory. `c` is about to
// start there.
weft::stack shared_slot_stack(shared_slot& slot) noexcept;

// The size that the group was made with.
std::size_t shared_stack_bytes(const shared_slot& slot) noexcept;

// Where to switch in order to enter c: c itself when its live part is in place, or has been
// brought; else the copier, which brings it and goes on to c, or comes back with no_room: nothing
// has changed then. c is t.running already.
annotated_context& enter_shared(control& c, thread_block& t);

// The same for leaving c, towards its resumer. c's context is saved by the switch that follows.
annotated_context& leave_shared(control& c, thread_block& t);
annotated_context& leave_shared_for_good(control& c, thread_block& t);

// Aborts when c and the running coroutine have the same stack: what one brings in its frame would
// be copied away before the other sees it.
void refuse_shared_frame(const control& c, std::source_location place);

}  // namespace weft::detail
