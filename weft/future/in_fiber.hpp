// in_fiber: where the functions run that are given to a future and may wait.
//
// Its one idea: a fiber is lent to each of them, and given back when it returns. It comes from a
// LIFO list of the thread's, with its stack, so that a function that does not wait costs two
// switches, and a million of them one fiber. Only where it waits does the fiber become one of the
// executor's flows, and the next function gets another.
//
//      a turn --> [idle fiber] --> function returns -----------> idle again, the first in the list
//                                  the next turn is such a one:  it runs that as well
//                                  function waits: the turn ends, the fiber lives in the executor
//                                  it throws, or was asked to stop: the fiber ends with it
//
// This is all that the layer needs of fibers; what does not want them says `plain`.
#pragma once

#include "weft/future/future_core.hpp"
#include "weft/wait/context_local.hpp"

namespace weft::detail {

struct lent_turn {
    void (*run)(future_core&);      // in the fiber
    void (*ended)(void*) noexcept;  // of the core, which got what left run() as its failure, or
                                    // a stop where its executor has ended
    // There is no fiber, or no stack, for it, and it was not run.
    void (*refused)(future_core&) noexcept;
};

// Runs it in the turn of c, with bindings of a context_local, which it takes.
void run_in_fiber(future_core& c, const lent_turn& turn, context_node* context) noexcept;

// What stands in a core's target, from where it is made to its turn, if all of its turn is in a
// fiber: which that is, and the bindings in force where it was made.
class lent_target {
public:
    // Throws bad_alloc.
    lent_target() : here_(context_here()) {
        if (here_ != nullptr) [[unlikely]]
            acquire();
    }
    lent_target(const lent_target&) = delete;
    ~lent_target() {
        if (memory_ != nullptr) [[unlikely]]
            release();
    }
    void give(future_core& c, const lent_turn& turn) noexcept {
        c.target = here_ == nullptr ? const_cast<lent_turn*>(&turn) : bound_to(turn);
    }

    // Gives back the bindings.
    static void drop(future_core& c) noexcept;
    static void take_turn(frame* f) noexcept;

private:
    WEFT_COLD void acquire();
    WEFT_COLD void release() noexcept;
    WEFT_COLD void* bound_to(const lent_turn& turn) noexcept;

    context_node* const here_;
    void* memory_ = nullptr;  // of what refers to them
};

}  // namespace weft::detail
