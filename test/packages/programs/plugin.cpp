// A shared object that weft is in, and nothing else of the program is: what a plugin of a server
// is.

#include <chrono>
#include <stdexcept>

#include "weft/weft.hpp"

// 0 if a fiber ran, one that was stopped ran its destructors, and an exception came through.
extern "C" int plugin_answers();

int plugin_answers() {
    using namespace std::chrono_literals;
    int destroyed = 0;
    struct guard {
        int& count;
        ~guard() { ++count; }
    };
    try {
        weft::run([&] {
            weft::fiber waits([&] {
                const guard g{destroyed};
                weft::this_fiber::sleep_for(1h);
            });
            weft::this_fiber::yield();
            waits.request_stop();
            waits.join();
            throw std::runtime_error("out of the loop");
        });
    } catch (const std::runtime_error&) {
        return destroyed == 1 ? 0 : 1;
    }
    return 1;
}
