// expect: callable_without_arguments
// The argument after the function is the pool.
#include "weft/sched/blocking.hpp"

void use() {
#ifdef CONTROL
    weft::run_blocking([] {});
#else
    weft::run_blocking([](int) {});
#endif
}
