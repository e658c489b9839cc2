// One layer and what lies under it: a coroutine that is killed runs its destructors.

#include "weft/coroutine/coroutine.hpp"

int main() {
    int destroyed = 0;
    struct guard {
        int& count;
        ~guard() { ++count; }
    };
    {
        weft::coroutine<> c([&] {
            const guard g{destroyed};
            weft::this_coroutine::yield();
        });
        c.resume();
    }
    return destroyed == 1 ? 0 : 1;
}
