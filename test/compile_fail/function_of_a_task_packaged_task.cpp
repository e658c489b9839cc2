// expect: the function returns a task that is never awaited
// It would end at once, and its task would never have run.
#include "test/compile_fail/waits.hpp"
#include "weft/future/packaged_task.hpp"

void use() {
    weft::packaged_task<void()> t(waits);
    t();
}
