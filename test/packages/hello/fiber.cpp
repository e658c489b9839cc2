// fiber: two on a loop, of which one joins the other.

#include "weft/fiber/fiber.hpp"

#include "weft/sched/loop.hpp"

int main() {
    int sum = 0;
    weft::loop l;
    const auto begin = [&] {
        weft::fiber other([&] { ++sum; });
        other.join();
        ++sum;
    };
    weft::fiber f(begin, {.on = l});
    l.run();
    return sum == 2 ? 0 : 1;
}
