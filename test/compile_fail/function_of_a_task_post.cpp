// expect: the function returns a task that is never awaited
// It would be called, and its task would never have run.
#include "test/compile_fail/waits.hpp"
#include "weft/sched/loop.hpp"

void use() {
    weft::loop l;
    l.post(waits);
    l.run();
}
