// expect: spawn takes a function without parameters; a task is spawned into a nursery
// A fiber calls; a task has to be awaited.
#include "weft/fiber/spawn.hpp"
#include "weft/task/task.hpp"

inline weft::task<int> number() { co_return 5; }

void use() {
#ifdef CONTROL
    weft::spawn([] { return 5; }).get();
#else
    weft::spawn(number());
#endif
}
