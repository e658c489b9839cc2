// hook: two fibers of one thread sleep in libc.

#include "weft/hook/hook.hpp"

#include <unistd.h>

#include "weft/fiber/nursery.hpp"
#include "weft/run/run.hpp"

int main() {
    int woken = 0;
    weft::run([&] {
        weft::nursery sleepers;
        for (int i = 0; i < 2; ++i) sleepers.spawn([&] { woken += usleep(1000) == 0; });
        sleepers.join();
    });
    return woken == 2 ? 0 : 1;
}
