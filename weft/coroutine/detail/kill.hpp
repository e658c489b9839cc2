// kill: how a suspended coroutine is made to unwind, and the possible outcomes.
//
//   killer: kill(c) ---- resume with the request ------> c's yield: request.run
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

#include <source_location>

#include "weft/coroutine/detail/control.hpp"

namespace weft::detail {

// See coroutine::kill.
bool kill(control* c, std::source_location caller);

}  // namespace weft::detail
