// 07: children have a place in the code.
//
// A nursery is not left before all its children have ended. If a child fails, its siblings are
// stopped, all are waited for, and the error leaves the block.
//
//   build/release/examples/tour_07_nursery

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "weft/fiber/nursery.hpp"
#include "weft/run/run.hpp"

using namespace std::chrono_literals;

int stopped_siblings = 0;

std::string fetch(const std::string& what) {
    weft::this_fiber::sleep_for(5ms);
    if (what == "broken") throw std::runtime_error("no such page");
    return "<" + what + ">";
}

std::string wait_long() {
    struct at_end {
        ~at_end() { ++stopped_siblings; }
    } const a;
    weft::this_fiber::sleep_for(1h);
    return "never";
}

int main() {
    return weft::run([] {
        std::string page;
        {
            weft::nursery n;
            auto a = n.spawn([] { return fetch("head"); });
            auto b = n.spawn([] { return fetch("body"); });
            page = a.get() + b.get();
        }
        std::string error;
        try {
            weft::nursery n;
            n.spawn([] { return fetch("broken"); });
            n.spawn(wait_long);
            n.join();
        } catch (const std::exception& e) {
            error = e.what();
        }
        std::printf("%s, %s, stopped: %d\n", page.c_str(), error.c_str(), stopped_siblings);
        return page == "<head><body>" && error == "no such page" && stopped_siblings == 1 ? 0 : 1;
    });
}
