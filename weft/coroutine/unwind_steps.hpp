// The steps of a kill that the ways to walk a stack have in common. Private to unwind*.cpp.
//
//   unwind (stub) -> weft_unwind_begin: dry walk --- no pad ---------------------> finished
//                          |                `---- noexcept ---------------------> refused
//                          | raise                `-- a frame no rule describes -> weft_unwind_slowly
//                          v                                                          |
//                     landing pad -> _Unwind_Resume -> weft_unwind_stop               v
//                          ^                |               |            _Unwind_ForcedUnwind
//                          |                v (opt-in)      v                   |
//                          +--- weft_unwind_proceed <--- weft_unwind_stopped <--+
//                                           `--- no pad left: settle -> finished
#pragma once

#include <unwind.h>

#include "weft/coroutine/unwind.hpp"

namespace weft::detail {

// Makes the exception that the landing pads pass on.
void raise(unwinding& u) noexcept;

// On each return from a landing pad that may have rethrown: it alone is uncaught.
void recount(unwinding& u) noexcept;

// After the last cleanup: as if nothing had been thrown.
void settle(unwinding& u) noexcept;

// Reports that the frame at pc is in the way.
[[noreturn]] void refuse(unwinding& u, const char* why, std::uintptr_t pc) noexcept;

constexpr const char* built_without_exceptions =
    "a function with something to clean up is in the way, and weft is built without exceptions";

}  // namespace weft::detail

extern "C" {
// Unwinds by _Unwind_ForcedUnwind. Its frame has nothing to clean up.
[[noreturn, gnu::used]] void weft_unwind_slowly(weft::detail::unwinding& u);

// The stop function of a forced unwind: called for each frame, may take the walk over.
_Unwind_Reason_Code weft_unwind_stop(int, _Unwind_Action, _Unwind_Exception_Class,
                                     _Unwind_Exception*, _Unwind_Context*, void*);
}
