// expect: satisfy .stack_allocator|satisfied for .stack_pool|constraints? (not satisfied|failure)
// A pool takes its stacks from an allocator of stacks.
#include "weft/stack/mapped_stack.hpp"
#include "weft/stack/stack_pool.hpp"

#ifdef CONTROL
using allocator = weft::mapped_stack;
#else
using allocator = int;
#endif

void use(weft::stack_pool<allocator>&);
