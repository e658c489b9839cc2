// in_fiber: runs functions that are given to a future and may wait.
//
// Design: each function borrows a fiber and releases it when the function returns. The fiber comes
// with its stack from a LIFO list of the thread, so a function that does not wait costs two
// switches, and a million such functions use one fiber. Only if a function waits does its fiber
// become one of the executor's flows, and the next function gets another fiber.
//
//      a turn --> [idle fiber] --> function returns -----------> idle again, the first in the list
//                                  next turn needs a fiber too:  the same fiber runs that turn
//                                  function waits: the turn ends, the fiber becomes a flow
//                                  function throws, or was stopped: the fiber ends with it
//
// The layer needs no more of fibers; a function that needs no fiber is passed after `plain`.
#pragma once

#include "weft/future/detail/future_core.hpp"
#include "weft/wait/context_local.hpp"

namespace weft::detail {

struct borrowed_turn {
    void (*run)(future_core&);      // in the fiber
    void (*ended)(void*) noexcept;  // gets the core, whose failure is the exception that left
                                    // run(), or a stop if its executor has ended
    // No fiber or no stack could be had, and the function was not run.
    void (*refused)(future_core&) noexcept;
};

// Runs `turn` in the turn of c, with the bindings in `context`, and takes the reference to them.
void run_in_fiber(future_core& c, const borrowed_turn& turn, context_node* context) noexcept;

// The content of a core's target, from the construction of the core to its turn, if the whole turn
// runs in a fiber: the borrowed turn, and the bindings in force where the core was made.
class borrowed_target {
public:
    // Throws bad_alloc.
    borrowed_target() : here_(context_here()) {
        if (here_ != nullptr) [[unlikely]]
            acquire();
    }
    borrowed_target(const borrowed_target&) = delete;
    ~borrowed_target() {
        if (memory_ != nullptr) [[unlikely]]
            release();
    }
    void give(future_core& c, const borrowed_turn& turn) noexcept {
        c.target = here_ == nullptr ? const_cast<borrowed_turn*>(&turn) : bound_to(turn);
    }

    // Releases the bindings.
    static void drop(future_core& c) noexcept;
    static void take_turn(frame* f) noexcept;

private:
    WEFT_COLD void acquire();
    WEFT_COLD void release() noexcept;
    WEFT_COLD void* bound_to(const borrowed_turn& turn) noexcept;

    context_node* const here_;
    void* memory_ = nullptr;  // for the block that refers to the bindings
};

}  // namespace weft::detail
