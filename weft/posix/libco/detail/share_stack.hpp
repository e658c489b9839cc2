// stShareStack_t: stacks on which coroutines take turns.
#pragma once

#include "weft/coroutine/shared_stack_group.hpp"

// The names of libco are global.
struct stShareStack_t {
    weft::shared_stack_group group;
};
