#include "weft/run/run.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(run, returns_what_the_function_returns) {
    EXPECT_EQ(run([] { return 7; }), 7);
    EXPECT_EQ(*run([] { return std::make_unique<int>(8); }), 8);
    static int n = 9;
    EXPECT_EQ(&run([]() -> int& { return n; }), &n);
    static_assert(std::is_void_v<decltype(run([] {}))>);
    run([] {});
}

TEST(run, calls_a_function_that_can_be_called_only_once) {
    struct once {
        std::unique_ptr<int> p;
        int operator()() && { return *p; }
    };
    EXPECT_EQ(run(once{std::make_unique<int>(3)}), 3);
}

TEST(run, is_a_fiber_named_main_by_default) {
    EXPECT_EQ(run([] { return std::string(this_fiber::name()); }), "main");
    EXPECT_EQ(run([] { return std::string(this_fiber::name()); }, {.name = "other"}), "other");
}

TEST(run, starts_by_itself_with_every_launch_option) {
    for (const launch when : {launch::post, launch::dispatch, launch::deferred})
        EXPECT_EQ(run([] { return 1; }, {.launch = when}), 1);
}

TEST(run, rethrows_what_leaves_the_function) {
    EXPECT_THROW(run([]() -> int { throw std::out_of_range("far"); }), std::out_of_range);
    EXPECT_FALSE(this_fiber::exists());
    EXPECT_EQ(run([] { return 1; }), 1) << "the thread is as before";
}

TEST(run, throws_stopped_if_it_was_stopped) {
    const auto stopped_one = [] {
        run([] {
            current_flow()->request_stop(stop_reason::user);
            this_fiber::sleep_for(1h);
        });
    };
    try {
        stopped_one();
        ADD_FAILURE();
    } catch (const stopped& s) {
        EXPECT_EQ(s.reason, stop_reason::user);
    }
}

TEST(run, returns_when_all_that_it_started_is_done) {
    bool ended = false;
    run([&] {
        fiber([&] {
            this_fiber::sleep_for(2ms);
            ended = true;
        }).detach();
    });
    EXPECT_TRUE(ended);
}

TEST(run, can_be_called_repeatedly) {
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(run([i] {
                      this_fiber::yield();
                      return i;
                  }),
                  i);
}

}  // namespace
}  // namespace weft
