// The contract of an executor, for those of this layer: manual_executor, on which the other tests
// rely, and the thread's own.
#include "weft/wait/executor.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "test/support/gate.hpp"
#include "test/support/manual_executor.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::manual_executor;

struct noted : detail::frame {
    std::vector<int>* into;
    int number;
    runnable node;
    noted(std::vector<int>& v, int n)
        : frame{[](frame* f) {
                    auto* self = static_cast<noted*>(f);
                    self->into->push_back(self->number);
                },
                nullptr},
          into(&v),
          number(n) {
        node.handle = handle();
    }
};

struct alarm : timer_node {
    std::vector<int>* into;
    int number;
    timer_node* ends = nullptr;
    executor* on = nullptr;
    alarm(std::vector<int>& v, int n, time_point t) : into(&v), number(n) {
        deadline = t;
        fire = [](timer_node& fired) noexcept {
            auto& self = static_cast<alarm&>(fired);
            EXPECT_FALSE(self.armed);
            self.into->push_back(self.number);
            if (self.ends != nullptr && self.ends->armed) self.on->disarm(*self.ends);
        };
    }
};

TEST(executor, runs_posted_work_in_order_and_never_inline) {
    std::vector<int> ran;
    noted a(ran, 1);
    noted b(ran, 2);
    manual_executor on;
    on.post(a.node);
    on.post(b.node);
    EXPECT_TRUE(ran.empty());
    EXPECT_EQ(on.run_all(), 2u);
    EXPECT_EQ(ran, (std::vector{1, 2}));
}

// On the executor's own thread no other thread has to see the launch, and a deferral costs less.
TEST(executor, schedule_posts_and_on_its_own_thread_defers) {
    std::vector<int> ran;
    noted a(ran, 1);
    noted b(ran, 2);
    manual_executor on;
    bool posted = false;
    on.in_next_post([&] { posted = true; });
    on.schedule(a.node);
    EXPECT_TRUE(posted);
    posted = false;
    on.in_next_post([&] { posted = true; });
    on.call([&] { on.schedule(b.node); });
    EXPECT_FALSE(posted);
    on.run_all();
    EXPECT_EQ(ran, (std::vector{1, 2}));
}

TEST(executor, cancels_a_post_that_has_not_run) {
    std::vector<int> ran;
    noted a(ran, 1);
    noted b(ran, 2);
    manual_executor on;
    on.post(a.node);
    on.post(b.node);
    on.cancel_post(a.node);
    on.run_all();
    EXPECT_EQ(ran, std::vector{2});
}

TEST(executor, fires_at_the_deadline_and_never_earlier) {
    std::vector<int> fired;
    manual_executor on;
    alarm late(fired, 2, on.now() + 2ms);
    alarm soon(fired, 1, on.now() + 1ms);
    alarm gone(fired, 3, on.now() + 1ms);
    on.arm(late);
    on.arm(soon);
    on.arm(gone);
    on.disarm(gone);
    on.advance(1ms - 1ns);
    EXPECT_TRUE(fired.empty());
    on.advance(1ns);
    EXPECT_EQ(fired, std::vector{1});
    on.advance(24h);
    EXPECT_EQ(fired, (std::vector{1, 2}));
}

TEST(executor, a_timer_may_disarm_another_due_timer) {
    std::vector<int> fired;
    detail::thread_executor& on = detail::this_thread_host();
    const time_point now = on.now();
    alarm second(fired, 2, now);
    alarm first(fired, 1, now);
    first.ends = &second;
    first.on = &on;
    on.arm(first);
    on.arm(second);
    testing::gate closed;
    EXPECT_EQ(weft::await(closed.async_pass_until(on.now() + 1ms)), wait_status::timed_out);
    EXPECT_EQ(fired, std::vector{1});
}

TEST(executor, of_a_waiting_thread_runs_posts_of_other_threads) {
    std::vector<int> ran;
    noted a(ran, 1);
    noted b(ran, 2);
    testing::gate g;
    detail::thread_executor& on = detail::this_thread_host();
    std::thread other([&] {
        on.post(a.node);
        on.post(b.node);
        while (!g.let_one_pass()) std::this_thread::yield();
    });
    sync_wait(g.async_pass());
    other.join();
    EXPECT_EQ(ran, (std::vector{1, 2}));
}

}  // namespace
}  // namespace weft
