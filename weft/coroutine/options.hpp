// coroutine_options: the options with which a coroutine is made.
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
