// librf: a coroutine belongs to a scheduler, which resumes all ready coroutines in one batch. librf
// is therefore no peer with a resume of its own: this file has the same subjects in its terms.
// create: a started coroutine, on fresh memory. switch: a coroutine's turn in a batch, after which
// the coroutine is ready again. last_switch: the turn in which the coroutine ends.

#include <librf/librf.h>

#include <cstddef>
#include <cstdint>

#include "bench/bodies.hpp"
#include "bench/harness.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

struct librf_future {
    static constexpr const char* name = "librf";
};

librf::future_t<> counts_and_yields() {
    do {
        world.resumes += 1;
        co_await librf::yield();
    } while (!world.finishing);
}

void start(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) (*librf::this_scheduler()) + counts_and_yields();
}
void batch() { librf::this_scheduler()->run_one_batch(); }

auto created(std::size_t count) {
    return [=](auto, meter& m) {
        start(1);
        m.start();
        start(count);
        m.stop(count);
        batch();
        m.expect_equal(world.resumes, count + 1, "resumes");
    };
}

auto switched(std::size_t count, std::size_t rounds) {
    return [=](auto, meter& m) {
        start(count);
        batch();
        batch();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) batch();
        m.stop(count * rounds);
        m.expect_equal(world.resumes, count * (rounds + 2), "resumes");
    };
}

auto ended(std::size_t count, std::size_t rounds) {
    return [=](auto, meter& m) {
        for (std::size_t round = 0; round <= rounds; ++round) {
            world.finishing = false;
            start(count);
            batch();
            world.finishing = true;
            if (round > 0) m.start();  // the first round warms up
            batch();
            if (round > 0) m.stop(count);
        }
        m.expect_equal(world.resumes, count * (rounds + 1), "resumes");
    };
}

}  // namespace

// A coroutine's turns are those of a scheduler, as a fiber's are.
void add_fibers() {
    constexpr peers<librf_future> only{};
    const plan several{.children = 9};
    add("create/1000x128K", only, created(1000), several);
    add("create/5000x128K", only, created(5000));
    add("create/1000x2M", only, created(1000), several);
    add("create/30000x64K", only, created(30'000));
    add("switch/1x16K", only, switched(1, 1'000'000));
    add("switch/1000x128K", only, switched(1000, 1000));
    add("switch/5000x128K", only, switched(5000, 100));
    add("switch/1000x2M", only, switched(1000, 1000));
    add("switch/30000x64K", only, switched(30'000, 20));
    add("last_switch/1000x128K", only, ended(1000, 20));
}

}  // namespace bench
