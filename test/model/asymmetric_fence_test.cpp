// weft/base/detail/asymmetric_fence.hpp, and the checker's membarrier, under every interleaving.
#include "weft/base/detail/asymmetric_fence.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::asymmetric_fence;

constexpr auto relaxed = std::memory_order_relaxed;

void heavy() { asymmetric_fence::heavy(); }
void light() { asymmetric_fence().light(); }
void full() { asymmetric_fence::full().light(); }

// Each sets its own word and loads the other's: not both may miss.
report miss(void (*left)(), void (*right)()) {
    return explore(
        [=](execution& run) {
            weft::atomic<int> x{0}, y{0};
            int a = -1, b = -1;
            run.thread("left", [&] {
                x.store(1, relaxed);
                left();
                a = y.load(relaxed);
            });
            run.thread("right", [&] {
                y.store(1, relaxed);
                right();
                b = x.load(relaxed);
            });
            run.go();
            model::require(a + b > 0, "one saw the other");
        },
        {.deviations = 12});
}

TEST(asymmetric_fence, prevents_store_buffering_in_every_interleaving) {
    expect_right(miss(light, heavy));
    expect_right(miss(heavy, light));
    expect_right(miss(heavy, heavy));
    expect_right(miss(full, heavy));
    expect_right(miss(full, full));
}

TEST(asymmetric_fence, orders_nothing_by_the_light_side_alone) {
    expect_found(miss(light, light), "one saw the other");
    expect_found(miss(light, full), "one saw the other");
}

TEST(asymmetric_fence, orders_the_same_without_membarrier) {
    model::has_membarrier = false;
    const report both[] = {miss(light, heavy), miss(light, light)};
    model::has_membarrier = true;
    for (const report& r : both) expect_right(r);
}

// Three threads. If the heavy thread reads the store of the first thread, then the light thread
// reads it too, or the heavy thread reads the light thread's store.
TEST(asymmetric_fence, propagates_stores_of_a_third_thread) {
    expect_right(explore(
        [](execution& run) {
            weft::atomic<int> x{0}, y{0};
            int first = -1, then = -1, other = -1;
            run.thread("writes", [&] { x.store(1, relaxed); });
            run.thread("light", [&] {
                y.store(1, relaxed);
                light();
                other = x.load(relaxed);
            });
            run.thread("heavy", [&] {
                first = x.load(relaxed);
                heavy();
                then = y.load(relaxed);
            });
            run.go();
            model::require(first == 0 || then == 1 || other == 1,
                           "what the heavy side has read, the light one sees, or is seen");
        },
        {.deviations = 12}));
}

// A message needs its release and acquire still: the barrier is in the middle of nothing.
TEST(asymmetric_fence, does_not_replace_release_and_acquire) {
    expect_found(explore([](execution& run) {
                     model::var<int> data{0};
                     weft::atomic<int> ready{0};
                     run.thread("light", [&] {
                         data.write(1);
                         light();
                         ready.store(1, relaxed);
                     });
                     run.thread("heavy", [&] {
                         const bool is_ready = ready.load(relaxed) == 1;
                         heavy();
                         if (is_ready) static_cast<void>(data.read());
                     });
                     run.go();
                 }),
                 "a data race");
}

}  // namespace
