// unwind_steps: the steps of a kill that all ways to walk a stack share. Private to unwind*.cpp.
//
//   unwind: weft_unwind_begin, a dry walk ----- no pad at all -------------------> finished
//             |               |          `----- a noexcept frame ----------------> refused
//             | raise         `---------------- a frame that no rule describes --> slowly
//             v
//   +--> landing pad -> _Unwind_Resume -> weft_unwind_stop <- _Unwind_ForcedUnwind <- slowly
//   |                         |                  |
//   |                         | (fast_unwind)    | weft_unwind_stopped
//   |                         v                  v
//   +---- a pad above --- weft_unwind_proceed <--+
//                             `---------------- no pad above: settle ------------> finished
#pragma once

#include <unwind.h>

#include <cstddef>

#include "weft/unwind/detail/unwind.hpp"

namespace weft::detail {

static_assert(offsetof(unwinding, header) - offsetof(unwinding, type) == (WEFT_ARM ? 32
                                                                          : sizeof(void*) == 8
                                                                              ? 80
                                                                              : 48),
              "as in libstdc++'s and libc++abi's __cxa_exception");

// Makes the exception that the landing pads pass on.
void raise(unwinding& u) noexcept;

// Called on each return from a landing pad that may have rethrown: only the kill is uncaught.
void recount(unwinding& u) noexcept;

// Called after the last cleanup: restores the counts, as if nothing had been thrown.
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
