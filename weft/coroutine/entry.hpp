// The first and the last thing that happens on a coroutine's own stack.
//
// Its one idea: what enters a coroutine and what leaves it are one function, of the type of its
// body, and it is never returned from: the body is called there (inlined, as a rule), and what
// follows its end is the last switch. So there is no `ret` in it whose call was made long ago, and
// elsewhere, and which the processor would predict wrongly (resume.hpp).
//
//     weft_context_entry ---> body_block::enter ---> the body ---> end_body
//                                               \-- throws --> escaped_from_body --> left_body
#pragma once

#include "weft/coroutine/resume.hpp"

namespace weft::detail {

// Keeps what left the body for the resumer.
void escaped_from_body(context* self) noexcept;
// Leaves for good: after that.
void left_body(context* self) noexcept;
// What a resume_with brought. Where it is left otherwise than by a return, the body goes unrun.
void run_before_body(control& c, void* word, context* from);

// What comes before the body.
WEFT_ALWAYS_INLINE control& begin_body(context* from, context* self, void* word) {
    control& c = *control::of(self);
    arrived(c, {word, from, self});
    if (word != nullptr) [[unlikely]]
        run_before_body(c, word, from);
    return c;
}

// What comes behind it, and is not returned from. The model switches no stacks: there a body
// returns to what entered it.
WEFT_ALWAYS_INLINE void end_body() {
    if constexpr (!WEFT_MODEL) leave_for_good(this_thread());
}

}  // namespace weft::detail
