// hello_coroutine: a function that stops in the middle and is killed there.
//
// Shows: resume, yield, and that a kill runs every destructor on the coroutine's stack.
//
//   build/release/examples/hello_coroutine

#include <cstdio>

#include "weft/coroutine/coroutine.hpp"

int left = 0;
struct guest {
    ~guest() { std::printf("guest %d leaves\n", ++left); }
};

int main() {
    // [kill]
    weft::coroutine<> c([] {
        guest g;
        std::puts("one");
        weft::this_coroutine::yield();
        std::puts("never printed");
    });
    c.resume();
    c.kill();  // as would ~coroutine
    // [/kill]
    return left == 1 && c.done() ? 0 : 1;
}
