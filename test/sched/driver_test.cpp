// The contract between a loop and its driver.
#include "weft/sched/driver.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "test/sched/manual_driver.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::manual_driver;
using moments = std::vector<time_point>;

TEST(driver, is_asked_to_wait_until_the_earliest_deadline) {
    manual_driver::record seen;
    loop l(std::make_unique<manual_driver>(seen));
    fiber late([] { this_fiber::sleep_for(5ms); }, {.on = l});
    fiber soon([] { this_fiber::sleep_for(2ms); }, {.on = l});
    l.run();
    const moments wanted{time_point(2ms), time_point(2ms), time_point(5ms)};
    EXPECT_EQ(seen.waits, wanted) << "the first was ended by the wake for the posts";
    late.join();
    soon.join();
}

TEST(driver, is_not_asked_to_wait_while_something_is_ready) {
    manual_driver::record seen;
    loop l(std::make_unique<manual_driver>(seen));
    fiber f(
        [] {
            for (int i = 0; i < 1000; ++i) this_fiber::yield();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen.waits, moments{});
    f.join();
}

TEST(driver, is_woken_once_for_a_burst_of_posts) {
    manual_driver::record seen;
    loop l(std::make_unique<manual_driver>(seen));
    int ran = 0;
    for (int i = 0; i < 10; ++i) l.post([&] { ++ran; });
    EXPECT_EQ(seen.wakes, 1);
    EXPECT_EQ(l.run_until_idle(), 10u);
    EXPECT_EQ(ran, 10);
}

TEST(driver, is_not_woken_by_what_its_own_loop_runs) {
    manual_driver::record seen;
    loop l(std::make_unique<manual_driver>(seen));
    fiber child([] { this_fiber::sleep_for(1ms); }, {.on = l});
    fiber parent([&] { child.join(); }, {.on = l});
    const int before = seen.wakes;
    l.run();
    EXPECT_EQ(seen.wakes, before);
    parent.join();
}

TEST(driver, that_cannot_be_woken_ends_the_run_after_one_report) {
    manual_driver::record seen;
    static int reports;
    reports = 0;
    fiber a, b;
    {
        loop l(std::make_unique<manual_driver>(seen));
        l.on_deadlock([](loop&) { ++reports; });
        a = fiber([&] { b.join(); }, {.on = l});
        b = fiber([&] { a.join(); }, {.on = l});
        l.run();
        EXPECT_EQ(reports, 1);
        EXPECT_EQ(l.flow_count(), 2u);
    }
    EXPECT_EQ(a.join().reason(), stop_reason::shutdown);
    EXPECT_EQ(b.join().reason(), stop_reason::shutdown);
}

}  // namespace
}  // namespace weft
