// expect: callable_without_arguments
// A pool has no argument for it.
#include "weft/sched/pool.hpp"

void use() {
#ifdef CONTROL
    weft::pool p(1);
    p.post([] {});
#else
    weft::pool p(1);
    p.post([](int) {});
#endif
}
