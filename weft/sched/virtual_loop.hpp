// virtual_loop: a loop for tests, in which time jumps and the next ready handle is chosen at
// random.
//
// Design: the order in which ready flows run is not guaranteed, and the length of an idle time does
// not matter. So the next one is chosen by a seeded generator, and when none is ready the clock
// jumps to the earliest deadline: an hour of sleep takes no time, and the same seed gives the same
// run.
//
// explore() runs a test under many seeds and prints the first that fails, to be set as WEFT_SEED.
//
// Limits: the seed repeats what runs in the loop, and nothing of other threads, other clocks or the
// system.
//
//   weft::testing::virtual_loop l(seed);          // or virtual_loop(): WEFT_SEED, or 1
//   weft::fiber f([] { weft::this_fiber::sleep_for(1h); }, {.on = l});
//   l.run();                                      // a deadlock prints the seed, ends the program
//   EXPECT_EQ(l.trace_hash(), expected);
//
// Model: test/model/loop_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "weft/sched/loop.hpp"

namespace weft::testing {

class virtual_loop {
public:
    virtual_loop();
    explicit virtual_loop(std::uint64_t seed);
    virtual_loop(const virtual_loop&) = delete;
    virtual_loop& operator=(const virtual_loop&) = delete;
    // As ~loop().
    ~virtual_loop();

    weft::loop& loop() noexcept { return *loop_; }
    operator scheduler_ref() noexcept { return *loop_; }

    // Until no flow is live in it.
    void run();
    time_point now() const noexcept { return loop_->now(); }
    std::uint64_t seed() const noexcept;

    // A hash of what ran when, in virtual time, and of each timer that fired: equal for equal
    // seeds.
    std::uint64_t trace_hash() const noexcept;

private:
    class jumping_clock;
    class lot;

    std::unique_ptr<lot> lot_;
    std::unique_ptr<weft::loop> loop_;
};

// WEFT_SEED where it is set, else `otherwise`.
std::uint64_t seed_from_environment(std::uint64_t otherwise) noexcept;

// Calls run(seed) for `count` seeds, or for WEFT_SEED alone where that is set, until it returns
// false or throws; then prints the seed, and the exception's message, on standard error. True if
// every run succeeded.
bool explore(std::uint64_t count, bool (*run)(void* of, std::uint64_t seed), void* of);
template <class F>
    requires std::is_invocable_r_v<bool, F&, std::uint64_t>
bool explore(std::uint64_t count, F run) {
    return explore(
        count, [](void* f, std::uint64_t seed) -> bool { return (*static_cast<F*>(f))(seed); },
        &run);
}

}  // namespace weft::testing
