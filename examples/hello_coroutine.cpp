// hello_coroutine: a function that stops in the middle, goes on, and is killed before its end.
//
// Shows: resume, yield, and that a kill runs every destructor on the coroutine's stack.
//
//   build/release/examples/hello_coroutine

// [program]
#include <cstdio>

#include "weft/coroutine/coroutine.hpp"

int guests = 0;

struct guest {
    guest() { ++guests; }
    ~guest() { std::printf("the guest leaves, %d left\n", --guests); }
};

int main() {
    weft::coroutine<> c([] {
        guest g;
        std::puts("one");
        weft::this_coroutine::yield();
        std::puts("two");
        weft::this_coroutine::yield();
        std::puts("never printed");
    });
    c.resume();
    c.resume();
    c.kill();  // as would ~coroutine
    return guests == 0 && c.done() ? 0 : 1;
}
// [/program]
