// A kill in a program that links weft::fast_unwind, statically (STATIC is 1) or not: every
// destructor runs either way, and is_linked() returns whether the opt-in is in effect.
#include <cstdio>
#include <stdexcept>

#include "weft/coroutine/coroutine.hpp"
#include "weft/unwind/fast_unwind/fast_unwind.hpp"

namespace {

int left = 0;

struct guest {
    ~guest() { ++left; }
};

[[gnu::noinline]] void descend(int depth) {
    const guest g;
    if (depth > 1)
        descend(depth - 1);
    else
        weft::this_coroutine::yield();
}

}  // namespace

int main() {
    weft::coroutine<> c([] { descend(10); });
    c.resume();
    c.kill();
    bool caught = false;
    try {
        const guest g;
        throw std::runtime_error("ordinary");
    } catch (const std::runtime_error&) {
        caught = true;
    }
    const bool linked = weft::fast_unwind::is_linked();
    std::printf("%d guests left, caught: %d, fast_unwind: %d\n", left, caught, linked);
    return left == 11 && caught && linked == !STATIC ? 0 : 1;
}
