// begin_body, end_body: the first and the last code that runs on a coroutine's own stack.
//
// Design: one function per body type enters the coroutine and leaves it. It never returns: it calls
// the body (inlined, as a rule) and then makes the last switch. So it has no `ret` whose call was
// made long ago and elsewhere, which the processor would mispredict (resume.hpp).
//
//     weft_context_entry ---> body_block::enter ---> the body ---> end_body
//                                               \-- throws --> escaped_from_body --> left_body
#pragma once

#include "weft/coroutine/detail/resume.hpp"

namespace weft::detail {

// Stores the exception that left the body, for the resumer.
void escaped_from_body(context* self) noexcept;
// Leaves for the last time, after escaped_from_body.
void left_body(context* self) noexcept;
// Runs the function of a resume_with. If that function does not return, the body is not run.
void run_before_body(control& c, void* word, context* from);

// Runs before the body.
WEFT_ALWAYS_INLINE control& begin_body(context* from, context* self, void* word) {
    control& c = *control::of(self);
    arrived(c, {word, from, self});
    if (word != nullptr) [[unlikely]]
        run_before_body(c, word, from);
    return c;
}

// Runs after the body, and does not return. The model switches no stacks: there the body returns to
// its caller.
WEFT_ALWAYS_INLINE void end_body() {
    if constexpr (!WEFT_MODEL) leave_for_good(this_thread());
}

}  // namespace weft::detail
