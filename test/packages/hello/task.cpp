// task: a C++20 coroutine, and a thread that waits for it.

#include "weft/task/task.hpp"

#include "weft/task/sync_wait.hpp"

static weft::task<int> two() { co_return 2; }
static weft::task<int> four() { co_return co_await two() * 2; }

int main() { return weft::sync_wait(four()) == 4 ? 0 : 1; }
