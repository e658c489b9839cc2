// The one unit that holds TooManyCooks.
#define TMC_IMPL
#include <tmc/ex_cpu.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>
