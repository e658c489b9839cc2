// Hooks: ten fibers of one thread sleep in libc at the same time.

#include "weft/hook/hook.hpp"

#include <unistd.h>

#include <chrono>

#include "weft/fiber/nursery.hpp"
#include "weft/run/run.hpp"

int main() {
    const auto before = std::chrono::steady_clock::now();
    weft::run([] {
        weft::nursery sleepers;
        for (int i = 0; i < 10; ++i) sleepers.spawn([] { usleep(100'000); });
        sleepers.join();
    });
    return std::chrono::steady_clock::now() - before < std::chrono::milliseconds(900) ? 0 : 1;
}
