// coroutine_options: the options with which a coroutine is made.
//
// Design: an aggregate with a default for each field, so that a call names only what differs.
//
// Limits: `stack` and `shared` refer to objects that outlive the coroutine. `stack_bytes` is a size
// of the process's own stacks alone. A coroutine that has `shared` has no stack of its own.
//
//   weft::coroutine<> c(body, {.name = "session", .stack_bytes = 64 * 1024});
#pragma once

#include <cstddef>
#include <string_view>

#include "weft/context/fp_environment.hpp"
#include "weft/stack/default_stacks.hpp"

namespace weft {

class shared_stack_group;

struct coroutine_options {
    std::string_view name = {};                     // copied; for messages
    std::size_t stack_bytes = default_stack_bytes;  // of the process's own stacks
    stack_allocator_ref stack = {};                 // other stacks than the process's
    fp_environment fp = fp_environment::own;
    shared_stack_group* shared = nullptr;  // instead of a stack of its own
};

}  // namespace weft
