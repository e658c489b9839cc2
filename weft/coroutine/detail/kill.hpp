// kill_request: how a suspended coroutine is made to unwind, and the possible outcomes.
//
//   killer: kill(c) ---- resume with a kill_request -----> c's yield: request.run
//                                                             |
//                                                          unwind()     cleanups, innermost first
//                                                          /      \                              .
//           <----- leave_for_good ----------------- finished      swallowed by a catch (...)
//                                                                    |
//                                                          the body runs to its next yield, which
//                                                          unwinds it again; or returns
//
// The request is in the killer's frame, because the killer waits. If that frame is on a shared
// stack, which may be copied out meanwhile, the request is allocated.
#pragma once

#include "weft/coroutine/detail/resume.hpp"
#include "weft/unwind/detail/unwind.hpp"

namespace weft::detail {

struct kill_request : on_top, unwinding {
    control* victim = nullptr;
    std::source_location caller;  // of the kill, for messages
    unsigned swallows = 0;
    bool active = true;    // cleanups are running
    bool unwound = false;  // the whole stack was unwound
};

// A body that swallows its kill this often would run forever: it is reported, and the program
// aborts.
inline constexpr unsigned swallow_limit = 1000;

// Called at a yield of a coroutine that swallowed its kill.
[[noreturn]] void unwind_again(control& c);

}  // namespace weft::detail
