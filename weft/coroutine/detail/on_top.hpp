// on_top: what a switch carries besides control: a request to the coroutine that it enters, or the
// word that a coroutine leaves for its resumer.
//
//   resume ---- request, run on top of the coroutine's stack -----> yield
//   resume <--- null: yielded; over: done; introduced; no_room ---- yield, or the last switch
#pragma once

#include <source_location>

#include "weft/context/entry_point.hpp"

namespace weft::detail {

struct control;

// A request: run(self) runs instead of, or before, the return from the coroutine's yield. The
// caller that makes the request keeps it alive.
struct on_top {
    void (*run)(on_top&, control& self, context* from);
};

// The words: the coroutine is done; it was entered by switch_to; its live part could not be put on
// its shared stack, because there is no memory for the live part that is there.
extern on_top over;
extern on_top introduced;
extern on_top no_room;

// A kill in progress, as far as the switches of the coroutine that unwinds need to know it.
struct pending_kill : on_top {
    // Called at a yield of a body that swallowed the kill: unwinds it again, and does not return.
    void (*again)(control&) = nullptr;
    std::source_location caller;  // of the kill, for messages
    bool unwound = false;         // the whole stack was unwound
};

}  // namespace weft::detail
