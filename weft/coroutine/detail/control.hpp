// control: the control block of one coroutine.
//
//            control (block_cache)                stack (stack_allocator_ref), from the first
//            resume on
//      +0   +----------------------------+               +---------------------+ <- stack.top
//           | pc  sp  bp  bx             | context       | weft_context_entry  |
//           | state word  | verbs        |               | body_block::enter   |
//           | resumer     | stack.limit  |               |   ... the body ...  |
//      +64  +----------------------------+               | yield               | <- sp
//           | stack.top  id              |               +---------------------+
//           | source or seat             |                        ...
//           | extras  error  killing     |               +---------------------+ <- stack.limit
//           +----------------------------+
//           | values in transit, body    | typed_control, body_block
//           +----------------------------+
//
// The control block is not on the stack: a coroutine that has not started has no stack, a coroutine
// that is done has released it, and a shared stack holds no object of weft's.
//
// Invariants:
// I1  the state is running from the hold until the resumer has control back and stores another
//     state, so a coroutine is resumable only when its context is complete.
// I2  stack is empty exactly in the states ready, done and killed.
// I3  resumer is null, except while the coroutine runs and another coroutine resumed it. The
//     frequent path, where the thread itself resumes, does not write it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "weft/base/assert.hpp"
#include "weft/context/detail/annotated_context.hpp"
#include "weft/context/fp_environment.hpp"
#include "weft/coroutine/detail/own_id.hpp"
#include "weft/coroutine/detail/state_word.hpp"
#include "weft/stack/stack_allocator_ref.hpp"

namespace weft {

class shared_stack_group;

namespace detail {

struct control;
struct pending_kill;
struct coroutine_extras;
struct shared_slot;

// A coroutine's assignment to a shared stack.
struct shared_seat {
    shared_slot* slot;
    std::byte* saved;  // its live part while it is copied out; null while it is in place
};

// The operations of a typed coroutine that the untyped core calls: one constant table per body
// type.
struct body_verbs {
    entry_point entry;                        // moves the body to the stack, calls it; may throw
    void (*destroy_body)(control*) noexcept;  // a body that has not run
    void (*release)(control*) noexcept;       // releases the block, after its body was destroyed
    const void* signature;                    // identifies Out(In)
    // The size of the block, if releasing it is all that release() does for a coroutine that is
    // done and left no exception; else 0.
    std::size_t plain_bytes;
};

struct alignas(cache_line_bytes) control : annotated_context {
    state_word word;  // I1
    fp_control fp;    // own_fp: while suspended
    const body_verbs* verbs;
    control* resumer = nullptr;  // I3
    weft::stack stack;           // I2
    own_id id;
    // Aligned to its own size, so that GCC copies it as one: making a coroutine is faster by a
    // fourth than with two words through registers.
    union {
        stack_allocator_ref source;  // where the stack comes from, or
        shared_seat seat;            // on_shared_stack: its assignment to a shared stack
    };
    coroutine_extras* extras = nullptr;  // fields that few coroutines use: name, private data
    std::exception_ptr error;            // the body's exception, until the resumer takes it
    // A coroutine that is handed runs, and cannot be killed until it is neither.
    union {
        pending_kill* killing;     // being_killed: in the killer's frame
        fp_control fp_of_resumer;  // handed: of a chain that a coroutine without own_fp began
    };

    control(const body_verbs& v, stack_allocator_ref from) noexcept : verbs(&v), source(from) {}

    static control* of(context* c) noexcept {
        return static_cast<control*>(static_cast<annotated_context*>(c));
    }
    agent_info info() const noexcept;
};

}  // namespace detail
}  // namespace weft
