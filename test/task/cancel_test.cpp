// Every wait of tasks and fibers for each other, ended early: by a stop, by the deadline of a
// scope, before it starts. The waiter returns within a millisecond of the loop's time, and what the
// waiter started has ended by then.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/task/on_loop.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/task/async_generator.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/task/when_all.hpp"
#include "weft/task/when_any.hpp"
#include "weft/task/with_nursery.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace on_loop;

void hold_in_a_fiber(int& n) {
    const held h(n);
    weft::this_fiber::sleep_for(1h);
}
weft::eager_task<> hold_eagerly(int& n) { co_await hold_for_an_hour(n); }
weft::async_generator<int> hold_before_the_first(int& n) {
    co_await hold_for_an_hour(n);
    co_yield 1;
}

struct wait_of_tasks {
    const char* name;
    // In a fiber, for an hour unless it is ended; then it throws. The argument counts the objects
    // that are live meanwhile.
    void (*run)(int& live_count);
};

const wait_of_tasks every_wait_of_tasks[] = {
    {"fiber_join",
     [](int& n) {
         weft::fiber child([&] { hold_in_a_fiber(n); });
         child.join();
     }},
    {"join_handle_get",
     [](int& n) {
         auto child = weft::spawn([&] { return hold_in_a_fiber(n), 1; });
         child.get();
     }},
    {"fiber_async_join_in_a_task",
     [](int& n) {
         weft::fiber child([&] { hold_in_a_fiber(n); });
         const auto joins = [](weft::fiber& f) -> task<> { co_await f.async_join(); };
         weft::await(joins(child));
     }},
    {"child_fiber_get",
     [](int& n) {
         weft::nursery all;
         auto child = all.spawn([&] { return hold_in_a_fiber(n), 1; });
         child.get();
     }},
    {"task_handle_get",
     [](int& n) {
         weft::nursery all;
         auto child = all.spawn(hold_for_an_hour(n));
         child.get();
     }},
    {"nursery_join",
     [](int& n) {
         weft::nursery all;
         all.spawn(hold_for_an_hour(n));
         all.join();  // returns, as the children have ended
         weft::this_fiber::throw_if_stopped();
     }},
    {"with_nursery",
     [](int& n) {
         const auto body = [](int& count) -> task<> {
             co_await weft::with_nursery([&](weft::nursery& all) -> task<> {
                 all.spawn(hold_for_an_hour(count));
                 co_await all.async_join();
             });
         };
         weft::await(body(n));  // returns too
         weft::this_fiber::throw_if_stopped();
     }},
    {"await_task", [](int& n) { weft::await(hold_for_an_hour(n)); }},
    {"await_eager_task", [](int& n) { weft::await(hold_eagerly(n)); }},
    {"await_shared_task",
     [](int& n) {
         weft::shared_task<int> t(hold_for_an_hour(n));
         struct at_end {
             weft::shared_task<int>& t;
             ~at_end() {
                 t.request_stop();
                 const weft::shield until_it_has_ended;
                 try {
                     weft::await(t);
                 } catch (const weft::stopped&) {
                 }
             }
         } const a{t};
         weft::await(t);
     }},
    {"async_generator_next",
     [](int& n) {
         auto g = hold_before_the_first(n);
         weft::await(g.next());
     }},
    {"when_all",
     [](int& n) { weft::await(weft::when_all(hold_for_an_hour(n), hold_for_an_hour(n))); }},
    {"when_all_of_a_range",
     [](int& n) {
         std::vector<task<int>> all;
         for (int i = 0; i < 3; ++i) all.push_back(hold_for_an_hour(n));
         weft::await(weft::when_all(std::move(all)));
     }},
    {"when_any",
     [](int& n) { weft::await(weft::when_any(hold_for_an_hour(n), hold_for_an_hour(n))); }},
    {"some",
     [](int& n) {
         weft::await(
             weft::when_n(2, hold_for_an_hour(n), hold_for_an_hour(n), hold_for_an_hour(n)));
     }},
    {"with_timeout",
     [](int& n) { static_cast<void>(weft::await(weft::with_timeout(hold_for_an_hour(n), 2h))); }},
    {"schedule_on",
     [](int& n) {
         weft::await(weft::schedule_on(*weft::current_executor(), hold_for_an_hour(n)));
     }},
    {"event_source_next",
     [](int&) {
         weft::event_source<int> never_set;
         weft::await(never_set.next());
     }},
    {"event_source_latest",
     [](int&) {
         weft::event_source<int> never_set;
         weft::await(never_set.latest());
     }},
};

class every_wait_of_task : public ::testing::TestWithParam<wait_of_tasks> {
protected:
    // Runs the wait in a fiber; why it ended, and when.
    template <class Before, class End>
    void ended_by(Before before, End end, weft::duration when, weft::stop_reason reason) {
        weft::testing::virtual_loop l(1);
        int live_count = 0;
        std::optional<weft::stop_reason> why;
        weft::time_point woken{};
        weft::fiber waits(
            [&] {
                [[maybe_unused]] const auto scope = before();
                try {
                    GetParam().run(live_count);
                } catch (const weft::stopped& s) {
                    why = s.reason;
                }
                woken = weft::now();
                EXPECT_EQ(live_count, 0) << "what it began has not ended";
            },
            {.on = l});
        weft::fiber ends(
            [&] {
                weft::this_fiber::sleep_for(10ms);
                end(waits);
            },
            {.on = l});
        l.loop().run_until_idle();
        EXPECT_EQ(why.has_value(), when == 0ms) << "it did not wait";
        l.run();
        waits.join();
        ends.join();
        ASSERT_TRUE(why.has_value());
        EXPECT_EQ(*why, reason);
        EXPECT_GE(woken, weft::time_point(when));
        EXPECT_LE(woken, weft::time_point(when + 1ms));
        EXPECT_EQ(live_count, 0);
        EXPECT_EQ(l.loop().flow_count(), 0u);
        EXPECT_LE(l.now(), weft::time_point(11ms)) << "a timer was left behind";
    }
};

TEST_P(every_wait_of_task, is_ended_by_a_stop) {
    ended_by([] { return 0; }, [](weft::fiber& f) { f.request_stop(weft::stop_reason::shutdown); },
             10ms, weft::stop_reason::shutdown);
}

TEST_P(every_wait_of_task, is_ended_by_the_deadline_of_a_scope) {
    struct limited {
        weft::timeout_scope limit{10ms};
    };
    ended_by([] { return std::make_unique<limited>(); }, [](weft::fiber&) {}, 10ms,
             weft::stop_reason::deadline);
}

TEST_P(every_wait_of_task, ends_at_once_after_a_stop) {
    ended_by(
        [] {
            weft::current_flow()->request_stop(weft::stop_reason::user);
            return 0;
        },
        [](weft::fiber&) {}, 0ms, weft::stop_reason::user);
}

// The loop ends while the fiber waits under a shield: all that it started ends with it.
TEST_P(every_wait_of_task, is_cancelled_when_its_stack_is_unwound) {
    int live_count = 0;
    {
        weft::loop l;
        weft::fiber f(
            [&] {
                const weft::shield s;
                GetParam().run(live_count);
            },
            {.on = l});
        f.detach();
        l.run_until_idle();
    }
    EXPECT_EQ(live_count, 0);
}

INSTANTIATE_TEST_SUITE_P(task, every_wait_of_task, ::testing::ValuesIn(every_wait_of_tasks),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
