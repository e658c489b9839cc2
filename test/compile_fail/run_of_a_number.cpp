// expect: run takes a function without parameters, or an awaitable such as a task
// There is nothing that a fiber could call or await.
#include "weft/run/run.hpp"

void use() {
#ifdef CONTROL
    weft::run([] { return 5; });
#else
    weft::run(5);
#endif
}
