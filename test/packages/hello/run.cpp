// run: a loop, and two fibers on it.

#include "weft/run/run.hpp"

#include "weft/fiber/nursery.hpp"

int main() {
    int sum = 0;
    weft::run([&] {
        weft::nursery n;
        for (int i = 1; i <= 2; ++i) n.spawn([&sum, i] { sum += i; });
        n.join();
    });
    return sum == 3 ? 0 : 1;
}
