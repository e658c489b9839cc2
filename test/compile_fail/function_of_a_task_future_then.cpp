// expect: the function returns a task that is never awaited
// Its future would have its value at once, and the task would never have run.
#include "weft/future/promise.hpp"
#include "weft/task/task.hpp"

void use() {
#ifdef CONTROL
    const auto waits = [] {};
#else
    const auto waits = []() -> weft::task<> { co_return; };
#endif
    weft::make_ready_future().then(waits).wait();
}
