// shared_stacks: a thousand stackful coroutines on two stacks.
//
// Shows: a shared_stack_group. Each coroutine has plain local variables. While a coroutine is
// suspended, only the used part of its stack is kept, and copied back before the coroutine resumes.
// A coroutine therefore costs some hundred bytes instead of a stack of its own. The rule that
// follows: while a coroutine is suspended, no other code may use the address of one of its locals.
//
//   build/release/examples/shared_stacks
#include <cstdint>
#include <cstdio>
#include <vector>

#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"

constexpr int coroutines = 1'000;
constexpr int steps = 5;

// Each coroutine walks its own pseudo-random path; the position is in the coroutine's locals.
std::uint32_t walk(std::uint32_t seed, void (*pause)()) {
    std::uint32_t path[steps] = {};
    for (std::uint32_t& x : path) {
        x = seed = seed * 1664525 + 1013904223;
        pause();
    }
    std::uint32_t sum = 0;
    for (const std::uint32_t x : path) sum += x;
    return sum;
}

int main() {
    weft::shared_stack_group stacks(2, 64 * 1024);
    std::vector<std::uint32_t> sums(coroutines);
    std::vector<weft::coroutine<>> all;
    for (std::uint32_t i = 0; i < coroutines; ++i) {
        all.emplace_back([&sums, i] { sums[i] = walk(i, [] { weft::this_coroutine::yield(); }); },
                         weft::coroutine_options{.shared = &stacks});
    }
    for (int round = 0; round <= steps; ++round) {
        for (auto& c : all) c.resume();
    }

    int right = 0;
    for (std::uint32_t i = 0; i < coroutines; ++i) right += sums[i] == walk(i, [] {}) ? 1 : 0;
    std::printf("%d of %d coroutines on 2 stacks came to the right sum\n", right, coroutines);
    return right == coroutines ? 0 : 1;
}
