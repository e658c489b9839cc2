// A wait of a fiber within a coroutine that it resumed: the fiber is suspended, with everything on
// its stack.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

struct says_when_destroyed {
    std::string& deaths;
    char name;
    ~says_when_destroyed() { deaths += name; }
};

TEST(nested_wait, suspends_the_fiber_with_all_its_nested_coroutines) {
    testing::virtual_loop l;
    std::vector<int> got;
    bool other_ran_meanwhile = false;
    fiber f(
        [&] {
            coroutine<int()> outer([&] {
                for (int i = 0;; ++i) {
                    coroutine<int()> inner([&] {
                        this_fiber::sleep_for(1s);
                        this_fiber::yield();
                        return i * 10;
                    });
                    this_fiber::sleep_for(1s);
                    this_coroutine::yield<int()>(inner.resume());
                }
                return 0;
            });
            for (int i = 0; i < 3; ++i) got.push_back(outer.resume());
        },
        {.on = l});
    fiber other(
        [&] {
            this_fiber::sleep_for(500ms);
            other_ran_meanwhile = got.empty();
        },
        {.on = l});
    const time_point begin = l.now();
    l.run();
    EXPECT_EQ(got, (std::vector<int>{0, 10, 20}));
    EXPECT_TRUE(other_ran_meanwhile);
    EXPECT_EQ(l.now() - begin, 6s);
}

TEST(nested_wait, keeps_an_exception_that_is_being_handled) {
    testing::virtual_loop l;
    int caught = 0;
    fiber f(
        [&] {
            coroutine<> c([] {
                try {
                    throw 7;
                } catch (int) {
                    this_fiber::sleep_for(1s);
                    throw;
                }
            });
            try {
                c.resume();
            } catch (int i) {
                caught = i;
            }
        },
        {.on = l});
    fiber other([] { EXPECT_EQ(std::current_exception(), nullptr); }, {.on = l});
    l.run();
    EXPECT_EQ(caught, 7);
}

TEST(nested_wait, unwinds_innermost_first_on_a_stop) {
    testing::virtual_loop l;
    std::string deaths;
    fiber f(
        [&] {
            says_when_destroyed outer{deaths, 'o'};
            coroutine<> c([&] {
                says_when_destroyed inner{deaths, 'i'};
                this_fiber::sleep_for(1h);
            });
            c.resume();
        },
        {.on = l});
    fiber killer([&] { f.request_stop(); }, {.on = l});
    l.run();
    EXPECT_EQ(deaths, "io");
    EXPECT_TRUE(f.join().is_stopped());
}

TEST(nested_wait, is_unwound_with_its_loop_even_under_a_shield) {
    std::string deaths;
    {
        loop l;
        fiber f(
            [&] {
                says_when_destroyed outer{deaths, 'o'};
                coroutine<> c([&] {
                    says_when_destroyed inner{deaths, 'i'};
                    const shield s;
                    this_fiber::sleep_for(1h);
                });
                c.resume();
                deaths += '!';
            },
            {.on = l});
        l.run_until_idle();
        f.detach();
    }
    EXPECT_EQ(deaths, "io");
}

}  // namespace
}  // namespace weft
