// expect: the function returns a task that is never awaited
// It would be called, and its task would never have run.
#include "test/compile_fail/waits.hpp"
#include "weft/sched/blocking.hpp"

void use() { weft::run_blocking(waits); }
