// What Valgrind runs: coroutines on every kind of stack that end in every way, far more than are
// live at a time, so that stacks are reused, and threads between which one migrates to and fro.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/stack/growable_stack.hpp"
#include "weft/stack/malloc_stack.hpp"
#include "weft/stack/mapped_stack.hpp"
#include "weft/stack/stack_pool.hpp"

namespace {

int guests = 0;

struct guest {
    std::string name = "a name that is too long to lie in the string itself";
    guest() { ++guests; }
    ~guest() { --guests; }
};

[[gnu::noinline]] int descend(int depth) {
    char frame[256];
    std::memset(frame, depth, sizeof frame);
    const guest g;
    if (depth == 0)
        weft::this_coroutine::yield();
    else
        depth = descend(depth - 1);
    return depth + frame[depth % 7] - frame[0];
}

void finish_and_kill_and_throw(const weft::coroutine_options& options) {
    for (int round = 0; round < 20; ++round) {
        std::vector<weft::coroutine<>> all;
        for (int depth = 1; depth < 20; ++depth)
            all.emplace_back(
                [depth] {
                    descend(depth);
                    if (depth % 3 == 0) throw std::runtime_error("by design");
                },
                options);
        for (auto& c : all) c.resume();
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i % 4 == 0) continue;  // killed by its destructor
            try {
                all[i].resume();
            } catch (const std::runtime_error&) {
            }
        }
    }
}

void to_and_fro() {
    weft::coroutine<> c([] {
        for (;;) descend(3);
    });
    for (int i = 0; i < 3; ++i) {
        c.resume();
        std::thread([&] { c.resume(); }).join();
    }
}

}  // namespace

int main() {
    finish_and_kill_and_throw({});
    weft::mapped_stack mapped(64 * 1024);
    finish_and_kill_and_throw({.stack = mapped});
    weft::malloc_stack allocated(64 * 1024);
    finish_and_kill_and_throw({.stack = allocated});
    weft::growable_stack growable(1024 * 1024);
    finish_and_kill_and_throw({.stack = growable});
    weft::stack_pool<> pool(64 * 1024);
    finish_and_kill_and_throw({.stack = pool});
    weft::shared_stack_group group;
    finish_and_kill_and_throw({.shared = &group});
    to_and_fro();
    std::puts(guests == 0 ? "every guest left" : "guests were left behind");
    return guests == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
