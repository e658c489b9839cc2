// expect: the function of a fiber returns a task that is never awaited
// It would end at once, and its task would never have run.
#include "test/compile_fail/waits.hpp"
#include "weft/run/run.hpp"

void use() { weft::run(waits); }
