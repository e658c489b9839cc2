// sched: a loop, which calls a function.

#include "weft/sched/loop.hpp"

int main() {
    int calls = 0;
    weft::loop l;
    l.post([&] { ++calls; });
    l.run();
    return calls == 1 ? 0 : 1;
}
