// parallel: two halves, on as many threads as are free.

#include "weft/parallel/fork_join.hpp"
#include "weft/sched/pool.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/sync_wait.hpp"

static weft::task<int> fib(int n) {
    if (n < 2) co_return n;
    auto [a, b] = co_await weft::fork_join(fib(n - 1), fib(n - 2));
    co_return a + b;
}

int main() {
    weft::pool p;
    return weft::sync_wait(weft::schedule_on(p, fib(10))) == 55 ? 0 : 1;
}
