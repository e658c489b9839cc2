// expect: the function returns a task that is never awaited
// It would end at once, and its task would never have run.
#include "weft/future/packaged_task.hpp"
#include "weft/task/task.hpp"

void use() {
#ifdef CONTROL
    const auto waits = [] {};
#else
    const auto waits = []() -> weft::task<> { co_return; };
#endif
    weft::packaged_task<void()> t(waits);
    t();
}
