// The first and the last thing that happens on a coroutine's own stack.
#pragma once

#include "weft/coroutine/resume.hpp"

namespace weft::detail {

// Every coroutine's context begins here: it calls the body through its verbs, keeps what it throws
// for the resumer, and leaves for good.
extern const entry_point coroutine_entry;

}  // namespace weft::detail
