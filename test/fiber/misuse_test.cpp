// What happens when...: a case for each row that speaks of fibers.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "test/support/counted.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::loop_thread;
using testing::virtual_loop;

using testing::counted;

TEST(misuse, destroy_never_started) {
    loop l;
    int destroyed = 0;
    int ran = 0;
    {
        auto c = std::make_shared<counted>(destroyed);
        fiber f([&ran, c = std::move(c)] { ++ran; }, {.launch = launch::lazy, .on = &l});
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(ran, 0);
}

TEST(misuse, destroy_suspended) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            fiber inner([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            });
            this_fiber::sleep_for(1ms);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(l.now(), time_point(1ms));
    outer.join();
}

TEST(misuse_death, destroy_running_itself_is_a_join_of_itself) {
    const auto joins_itself = [] {
        virtual_loop l(1);
        fiber f;
        f = fiber([&] { f.join(); }, {.name = "ouroboros", .on = l});
        l.run();
    };
    EXPECT_DEATH(joins_itself(), "weft: a fiber joins itself: fiber [0-9]+ \"ouroboros\"");
}

TEST(misuse, destroy_running_from_another_thread) {
    loop_thread there;
    std::atomic<bool> running{false};
    std::atomic<bool> ended{false};
    {
        fiber f(
            [&] {
                struct at_end {
                    std::atomic<bool>& e;
                    ~at_end() { e = true; }
                } const a{ended};
                running = true;
                for (;;) this_fiber::yield();
            },
            {.on = there});
        while (!running) std::this_thread::yield();
    }
    EXPECT_TRUE(ended);
}

TEST(misuse, fiber_object_dropped_without_join) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            fiber([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            });
            fiber([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1ms);
            }).detach();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(destroyed, 2);
    EXPECT_EQ(l.now(), time_point(1ms));
    outer.join();
}

TEST(misuse_death, uncaught_exception_in_a_fiber) {
    const auto uncaught = [] {
        virtual_loop l(1);
        fiber([] { throw std::runtime_error("no route"); }, {.name = "login", .on = l}).detach();
        l.run();
    };
    EXPECT_DEATH(uncaught(),
                 "weft: what\\(\\): no route\n"
                 "weft: an exception left a fiber that nobody joins: "
                 "fiber [0-9]+ \"login\"");
}

TEST(misuse, resume_from_another_thread) {
    loop_thread home;
    std::thread::id before, after;
    loop_thread elsewhere;
    fiber f(
        [&] {
            before = std::this_thread::get_id();
            fiber far([] { this_fiber::yield(); }, {.on = elsewhere});
            far.join();
            after = std::this_thread::get_id();
        },
        {.on = home});
    f.join();
    EXPECT_EQ(before, after) << "it goes on on its own thread, whoever wakes it";
}

TEST(misuse, switch_inside_catch) {
    loop l;
    int right = 0;
    const auto body = [&](int mine) {
        try {
            throw mine;
        } catch (int) {
            this_fiber::yield();
            try {
                throw;
            } catch (int again) {
                right += again == mine;
            }
        }
    };
    fiber a([&] { body(1); }, {.on = &l});
    fiber b([&] { body(2); }, {.on = &l});
    l.run();
    a.join();
    b.join();
    EXPECT_EQ(right, 2);
}

TEST(misuse, loop_destroyed_with_live_work) {
    int destroyed = 0;
    fiber f;
    {
        loop l;
        f = fiber(
            [&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            },
            {.on = &l});
        l.run_until_idle();
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(f.join().reason(), stop_reason::shutdown);
}

TEST(misuse, timer_with_huge_or_negative_durations) {
    virtual_loop l(1);
    fiber f(
        [&] {
            this_fiber::sleep_for(std::chrono::hours::min());
            this_fiber::sleep_until(time_point::min());
            EXPECT_EQ(l.now(), time_point{});
            fiber huge([] { this_fiber::sleep_for(std::chrono::hours::max()); });
            this_fiber::sleep_for(24h * 36500);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point(24h * 36500));
    f.join();
}

TEST(misuse_death, fiber_made_outside_of_any_executor) {
    EXPECT_DEATH(fiber([] {}), "weft: a fiber is made outside of any executor.*misuse_test.cpp");
}

TEST(misuse_death, join_of_an_object_without_a_fiber) {
    fiber f;
    EXPECT_DEATH(f.join(), "weft: join of a fiber object that has no fiber.*misuse_test.cpp");
    EXPECT_DEATH(f.detach(), "weft: join of a fiber object that has no fiber");
}

TEST(misuse_death, yield_outside_of_any_fiber) {
    EXPECT_DEATH(this_fiber::yield(), "weft: a call of this_fiber outside of any fiber");
}

TEST(misuse, wait_within_a_coroutine_that_a_fiber_resumed) {
    virtual_loop l(1);
    fiber f(
        [] {
            coroutine<> c([] { this_fiber::sleep_for(1h); });
            c.resume();
            EXPECT_TRUE(c.done());
        },
        {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point(1h)) << "the fiber waits, with all that it resumed";
    f.join();
}

TEST(misuse_death, yield_of_a_coroutine_in_a_fiber) {
    const auto yields = [] {
        loop l;
        fiber f([] { this_coroutine::yield(); }, {.name = "lost", .on = &l});
        l.run();
    };
    const char* const message =
        "weft: a fiber yielded to nobody: this_fiber::yield: fiber [0-9]+ \"lost\"";
    EXPECT_DEATH(yields(), message);
    const auto switches = [] {
        loop l;
        coroutine<> other([] {});
        fiber f([&] { other.switch_to(); }, {.name = "lost", .on = &l});
        l.run();
    };
    EXPECT_DEATH(switches(), message);
}

TEST(misuse_death, two_joins_of_one_fiber_object) {
    const auto joined_twice = [] {
        virtual_loop l(1);
        fiber f([] { this_fiber::sleep_for(1ms); }, {.on = l});
        fiber a([&] { f.join(); }, {.on = l});
        fiber b([&] { f.join(); }, {.on = l});
        l.run();
    };
    EXPECT_DEATH(joined_twice(), "weft: a fiber is joined twice.*misuse_test.cpp");
}

TEST(misuse_death, blocking_wait_in_what_a_loop_runs_outside_of_any_fiber) {
    const auto blocks = [] {
        loop l;
        l.post([] { this_fiber::sleep_for(1h); });
        l.run();
    };
    EXPECT_DEATH(blocks(), "weft: a blocking wait in what an executor runs outside of any fiber");
}

}  // namespace
}  // namespace weft
