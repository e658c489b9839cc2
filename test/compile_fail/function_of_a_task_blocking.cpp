// expect: the function returns a task that is never awaited
// It would be called, and its task would never have run.
#include "weft/sched/blocking.hpp"
#include "weft/task/task.hpp"

void use() {
#ifdef CONTROL
    const auto waits = [] {};
#else
    const auto waits = []() -> weft::task<> { co_return; };
#endif
    weft::run_blocking(waits);
}
