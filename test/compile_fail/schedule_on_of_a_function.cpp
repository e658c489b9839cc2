// expect: schedule_on takes a task; a function is called first
// A function that returns a task is called first: number().
#include "weft/sched/loop.hpp"
#include "weft/task/schedule_on.hpp"

inline weft::task<int> number() { co_return 5; }

void use() {
#ifdef CONTROL
    weft::loop l;
    static_cast<void>(weft::schedule_on(l, number()));
#else
    weft::loop l;
    weft::schedule_on(l, number);
#endif
}
