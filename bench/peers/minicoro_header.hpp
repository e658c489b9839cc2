// minicoro.h as all units of its program see it: stacks from the virtual memory of the system.
#pragma once

#define MCO_USE_VMEM_ALLOCATOR
#define MCO_MIN_STACK_SIZE 16384
#include <minicoro.h>
