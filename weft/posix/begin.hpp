// begin_fiber: how a fiber of weft.h is made, wherever it is to run.
#pragma once

#include "weft/posix/weft.h"
#include "weft/wait/launcher.hpp"

namespace weft::detail {

// An error number. It has begun on return, or will.
int begin_fiber(launcher& on, weft_t& id, const weft_attr_t* attr, weft_start_t start, void* arg);

// The loop of a thread that is there for those who have none. Null: there are no threads left.
launcher* loop_of_nobody() noexcept;

}  // namespace weft::detail
