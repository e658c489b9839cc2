// expect: awaitable
// A function that returns a task is called first: number().
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_timeout.hpp"

inline weft::task<int> number() { co_return 5; }

void use() {
#ifdef CONTROL
    static_cast<void>(weft::sync_wait(weft::with_timeout(number(), std::chrono::seconds(1))));
#else
    static_cast<void>(weft::sync_wait(weft::with_timeout(number, std::chrono::seconds(1))));
#endif
}
