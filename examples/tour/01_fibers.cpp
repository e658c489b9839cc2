// 01: two fibers take turns on one thread.
//
// A fiber is a function that waits like a thread, at the price of a coroutine. run() makes a loop,
// runs the first fiber in it, and returns when all have ended.
//
//   build/release/examples/tour_01_fibers

#include <cstdio>
#include <string>

#include "weft/fiber/spawn.hpp"
#include "weft/run/run.hpp"

void count(const char* who) {
    for (int i = 1; i <= 3; ++i) {
        std::printf("%s %d\n", who, i);
        weft::this_fiber::yield();  // the others first
    }
}

int main() {
    return weft::run([] {
        weft::fiber a([] { count("a"); });
        weft::fiber b([] { count("b"); });
        a.join();
        b.join();
        auto sum = weft::spawn([] { return 20 + 22; });  // a fiber that returns something
        return sum.get() == 42 ? 0 : 1;
    });
}
