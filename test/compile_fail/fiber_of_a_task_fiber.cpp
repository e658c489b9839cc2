// expect: the function of a fiber returns a task that is never awaited
// It would end at once, and its task would never have run.
#include "weft/fiber/fiber.hpp"

#include "test/compile_fail/waits.hpp"

void use() {
    weft::fiber f(waits);
    f.join();
}
