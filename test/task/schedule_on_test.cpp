#include "weft/task/schedule_on.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"

namespace {

using namespace on_loop;
using weft::resume_on;
using weft::schedule_on;

// A loop on a thread of its own, until it is destroyed.
class elsewhere {
public:
    elsewhere()
        : keeper_(wait_for_the_end(), loop), thread_([this] {
              loop.on_deadlock([](weft::loop&) {});  // others post to it
              keeper_->post_first_turn();
              loop.run();
          }) {}
    ~elsewhere() {
        keeper_->request_stop(weft::stop_reason::shutdown);
        thread_.join();
    }
    std::thread::id thread_id() const noexcept { return thread_.get_id(); }

    weft::loop loop;

private:
    static task<> wait_for_the_end() {
        try {
            co_await weft::sleep_until(weft::never);
        } catch (const weft::stopped&) {
        }
    }
    weft::detail::task_run<void> keeper_;
    std::thread thread_;
};

task<std::thread::id> where() { co_return std::this_thread::get_id(); }

TEST(schedule_on, runs_the_task_there_and_resumes_its_awaiter_here) {
    elsewhere there;
    const auto body = [&]() -> task<> {
        const std::thread::id here = std::this_thread::get_id();
        EXPECT_EQ(co_await schedule_on(there.loop, where()), there.thread_id());
        EXPECT_EQ(std::this_thread::get_id(), here);
    };
    weft::sync_wait(body());
}

TEST(schedule_on, can_be_awaited_by_threads_and_fibers) {
    elsewhere there;
    EXPECT_EQ(weft::sync_wait(schedule_on(there.loop, where())), there.thread_id());
    weft::loop here;
    here.on_deadlock([](weft::loop&) {});
    weft::fiber f(
        [&] { EXPECT_EQ(weft::await(schedule_on(there.loop, where())), there.thread_id()); },
        {.on = here});
    here.run();
    f.join();
}

TEST(schedule_on, forwards_errors_and_stops) {
    elsewhere there;
    EXPECT_THROW(weft::sync_wait(schedule_on(there.loop, failing_in(1ms, 3))), int);
    weft::loop here;
    here.on_deadlock([](weft::loop&) {});
    std::atomic<bool> waits{false};
    const auto body = [&]() -> task<> {
        waits = true;
        co_await weft::sleep_for(1h);
    };
    weft::fiber f([&] { weft::await(schedule_on(there.loop, body())); }, {.on = here});
    weft::fiber g(
        [&] {
            while (!waits) weft::this_fiber::sleep_for(1ms);
            f.request_stop();
        },
        {.on = here});
    here.run();
    EXPECT_TRUE(f.join().is_stopped());
    g.join();
}

TEST(resume_on, migrates_the_task_and_its_awaiters) {
    elsewhere there;
    const auto hop = [&]() -> task<> { co_await resume_on(there.loop); };
    const auto body = [&]() -> task<int> {
        EXPECT_NE(std::this_thread::get_id(), there.thread_id());
        co_await hop();
        EXPECT_EQ(std::this_thread::get_id(), there.thread_id());
        co_await weft::sleep_for(1ms);
        EXPECT_EQ(std::this_thread::get_id(), there.thread_id());
        co_return 4;
    };
    const std::thread::id here = std::this_thread::get_id();
    EXPECT_EQ(weft::sync_wait(body()), 4);
    EXPECT_EQ(std::this_thread::get_id(), here);
}

TEST(resume_on, works_in_a_task_awaited_by_a_fiber) {
    elsewhere there;
    weft::loop here;
    here.on_deadlock([](weft::loop&) {});
    const auto body = [&]() -> task<std::thread::id> {
        co_await resume_on(there.loop);
        co_return std::this_thread::get_id();
    };
    weft::fiber f(
        [&] {
            EXPECT_EQ(weft::await(body()), there.thread_id());
            EXPECT_NE(std::this_thread::get_id(), there.thread_id());
        },
        {.on = here});
    here.run();
    f.join();
}

TEST(resume_on, to_the_current_loop_continues_at_once) {
    weft::testing::virtual_loop l(1);
    const auto body = [&]() -> task<> {
        const std::uint64_t turns = l.loop().turn_count();
        co_await resume_on(l.loop());
        EXPECT_EQ(l.loop().turn_count(), turns);
    };
    run(l, body());
}

TEST(resume_on, whose_frame_is_destroyed_in_migration_never_arrives) {
    weft::loop there;
    bool arrived = false;
    const auto goes = [&]() -> task<> {
        co_await resume_on(there);
        arrived = true;
    };
    {
        task<> t = goes();
        t.start();
        EXPECT_FALSE(t.done());
    }
    there.run_until_idle();
    EXPECT_FALSE(arrived);
}

// The stop and the migration race; whichever is first, the next wait is ended.
TEST(resume_on, loses_no_stop_during_migration) {
    elsewhere a, b;
    for (int i = 0; i < 300; ++i) {
        std::atomic<bool> began{false};
        const auto body = [&]() -> task<> {
            began = true;
            for (;;) {
                co_await resume_on(b.loop);
                co_await resume_on(a.loop);
                if (weft::this_task::get_stop_token().stop_requested()) break;
            }
            co_await resume_on(i % 2 == 0 ? a.loop : b.loop);
            co_await weft::sleep_for(1h);
        };
        weft::detail::task_run<void> r(body(), a.loop);
        r->post_first_turn();
        while (!began) std::this_thread::yield();
        r->request_stop(weft::stop_reason::user);
        weft::detail::task_end end(*r, false);
        weft::await(end);
        EXPECT_THROW(r.take(), weft::stopped);
    }
}

// The end of a loop requests a stop of what waits there, and the completion comes from another
// executor.
template <class Begin>
void ends_before_what_it_waits_for(Begin begin) {
    elsewhere there;
    std::atomic<int> began{0}, ended{0};
    const auto far_away = [&]() -> task<> {
        struct at_end {
            std::atomic<int>& n;
            ~at_end() { ++n; }
        } const a{ended};
        ++began;
        bool asked = false;
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::stopped&) {
            asked = true;
        }
        EXPECT_TRUE(asked);
        const weft::shield says_goodbye;
        co_await weft::sleep_for(20ms);
    };
    {
        weft::loop here;
        begin(here, there.loop, far_away);
        while (began == 0) here.run_until_idle();
    }
    EXPECT_EQ(ended, 1);
}

TEST(schedule_on, a_destroyed_loop_waits_for_a_task_it_started_elsewhere) {
    weft::detail::task_run<void> r;
    const auto waits = [](weft::loop& there, auto& body) -> task<> {
        co_await schedule_on(there, body());
    };
    ends_before_what_it_waits_for([&](weft::loop& here, weft::loop& there, auto& body) {
        r = weft::detail::task_run<void>(waits(there, body), here);
        r->post_first_turn();
    });
    EXPECT_NO_THROW(r.take());
}

TEST(resume_on, a_destroyed_loop_waits_for_a_task_that_migrated_away) {
    weft::fiber f;
    const auto goes = [](weft::loop& there, auto& body) -> task<> {
        co_await resume_on(there);
        co_await body();
    };
    ends_before_what_it_waits_for([&](weft::loop& here, weft::loop& there, auto& body) {
        f = weft::fiber([&] { weft::await(goes(there, body)); }, {.on = here});
    });
    EXPECT_FALSE(f.join().is_stopped());
}

using resume_on_deathtest = ::testing::Test;
TEST_F(resume_on_deathtest, of_a_fiber_ends_the_program) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto breaks_the_rule = [] {
        weft::loop here;
        here.on_deadlock([](weft::loop&) {});
        weft::loop there;
        weft::fiber f([&] { weft::await(resume_on(there)); }, {.on = here});
        here.run();
    };
    EXPECT_DEATH(breaks_the_rule(),
                 "resume_on in a flow that stays on its thread: only a task goes over: fiber");
}

TEST_F(resume_on_deathtest, beside_a_task_that_waits_in_the_same_flow_ends_the_program) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto breaks_the_rule = [] {
        weft::loop here, there;
        const auto body = [&]() -> task<> {
            task<int> beside = number_in(1h, 1);
            beside.start();
            co_await resume_on(there);
        };
        weft::detail::task_run<void> r(body(), here);
        r->post_first_turn();
        here.run_until_idle();
    };
    EXPECT_DEATH(
        breaks_the_rule(),
        "weft: resume_on in a task while another, started in it outside the task, waits: task");
}

}  // namespace
