// expect: the function returns a task that is never awaited
// Its future would have its value at once, and the task would never have run.
#include "test/compile_fail/waits.hpp"
#include "weft/future/promise.hpp"

void use() { weft::make_ready_future().then(waits).wait(); }
