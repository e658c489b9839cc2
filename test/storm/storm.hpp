// storm: random work for a stated seed, until so many rounds are done or the time limit has passed.
//
// A storm is a program that repeats one round: it chooses its actions by `random`, performs them,
// and checks its law with STORM_CHECK. Each round has a seed of its own, which is printed when the
// round fails, so that one round alone can be run again; where threads take part their schedule is
// not part of the seed, so a replay repeats the round until the time limit has passed.
//
//   int main(int argc, char** argv) {
//       return weft::testing::storm::run(argc, argv, "kill", [](weft::testing::storm::random& r) {
//           ...
//           return operations;                    // how many of the storm's unit this round did
//       });
//   }
//
//   weft_storm_kill [--count OPERATIONS] [--seconds S] [--seed N] [--round SEED] [--progress S]
//
// The defaults are one second and a seed from the clock. --round repeats that round only, also
// after a crash, which prints its seed. --progress prints the progress every so many seconds. Exit:
// 0 done, 1 a law did not hold (abort, with the seed), 2 misuse.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace weft::testing::storm {

// splitmix64: each seed has its own sequence, neighbours too.
class random {
public:
    explicit random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    // From 0 on, below `bound`, which is not 0.
    std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

    // Once of `n` times.
    bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

private:
    std::uint64_t state_;
};

using round = std::uint64_t (*)(random&);

// The seed of the round that runs, for messages.
std::uint64_t current_seed() noexcept;

[[noreturn]] void failed(const char* condition, const char* file, int line) noexcept;

int run(int argc, char** argv, const char* name, round one);

}  // namespace weft::testing::storm

#define STORM_CHECK(condition)                                                            \
    do {                                                                                  \
        if (!(condition)) ::weft::testing::storm::failed(#condition, __FILE__, __LINE__); \
    } while (false)
