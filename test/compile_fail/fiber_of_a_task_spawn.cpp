// expect: the function of a fiber returns a task that is never awaited
// It would end at once, and its task would never have run.
#include "test/compile_fail/waits.hpp"
#include "weft/fiber/spawn.hpp"

void use() { weft::spawn(waits).get(); }
