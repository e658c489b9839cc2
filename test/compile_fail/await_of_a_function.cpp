// expect: awaitable
// A function that returns a task is called first: number().
#include "weft/task/task.hpp"
#include "weft/wait/await.hpp"

inline weft::task<int> number() { co_return 5; }

void use() {
#ifdef CONTROL
    weft::await(number());
#else
    weft::await(number);
#endif
}
