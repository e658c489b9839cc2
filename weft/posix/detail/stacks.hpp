// weft_stacks: what is behind a weft_stacks_t.
#pragma once

#include "weft/coroutine/shared_stack_group.hpp"

struct weft_stacks {
    weft::shared_stack_group group;
};
