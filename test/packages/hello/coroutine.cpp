// coroutine: one value out for each value in.

#include "weft/coroutine/coroutine.hpp"

int main() {
    weft::coroutine<int(int)> sum([](int n) -> int {
        for (int total = n;;) total += weft::this_coroutine::yield<int(int)>(total);
    });
    sum.resume(1);
    return sum.resume(2) == 3 ? 0 : 1;
}
