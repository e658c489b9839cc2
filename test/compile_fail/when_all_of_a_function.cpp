// expect: awaitable
// A function that returns a task is called first: number().
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"

inline weft::task<int> number() { co_return 5; }

void use() {
#ifdef CONTROL
    weft::sync_wait(weft::when_all(number(), number()));
#else
    weft::sync_wait(weft::when_all(number, number));
#endif
}
