// begin_fiber: how a fiber of weft.h is made, wherever it is to run.
#pragma once

#include "weft/posix/weft.h"
#include "weft/wait/scheduler.hpp"

namespace weft::detail {

// Returns an error number. At 0 the fiber has begun on return, or will.
int begin_fiber(scheduler& on, weft_t& id, const weft_attr_t* attr, weft_start_t start, void* arg);

// The loop of the library's thread, for callers outside any loop. Null: no thread can be made.
scheduler* loop_of_nobody() noexcept;

}  // namespace weft::detail
