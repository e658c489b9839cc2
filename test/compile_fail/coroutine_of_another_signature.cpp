// expect: body_for
// resume() passes no argument.
#include "weft/coroutine/coroutine.hpp"

void use() {
#ifdef CONTROL
    weft::coroutine<int(int)> c([](int n) { return n; });
    c.resume(5);
#else
    weft::coroutine<int()> c([](int n) { return n; });
    c.resume();
#endif
}
