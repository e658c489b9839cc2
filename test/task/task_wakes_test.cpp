// The cost of a wake of a task: no allocation, by any waker, and however often.

#include <gtest/gtest.h>

#include "test/support/allocations.hpp"
#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/task/async_generator.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/with_timeout.hpp"

namespace {

using namespace on_loop;

// A million wakes; a tenth where nothing is optimised.
constexpr int task_wakes = WEFT_DEBUG ? 100'000 : 1'000'000;
constexpr int first_rounds = 100;

// Each round is a task of its own, so that its frame is counted too.
template <class Round>
task<> rounds(Round round, std::size_t* allocated) {
    for (int i = 0; i < first_rounds; ++i) co_await round();
    const std::size_t before = weft::testing::allocations();
    for (int i = 0; i < task_wakes / 2; ++i) co_await round();
    if (allocated != nullptr) *allocated = weft::testing::allocations() - before;
}

// How many allocations two tasks of one loop make between their first rounds and their last.
template <class A, class B>
std::size_t allocations_of_tasks(A a, B b) {
    weft::loop l;
    std::size_t allocated = ~std::size_t{0};
    weft::detail::task_run<void> one(rounds(a, &allocated), l);
    weft::detail::task_run<void> two(rounds(b, nullptr), l);
    one->post_first_turn();
    two->post_first_turn();
    l.run();
    one.take();
    two.take();
    return allocated;
}

TEST(task_wakes, by_an_event_allocate_nothing) {
    weft::auto_reset_event there, back;
    EXPECT_EQ(allocations_of_tasks(
                  [&]() -> task<> {
                      there.set();
                      co_await back.async_wait();
                  },
                  [&]() -> task<> {
                      co_await there.async_wait();
                      back.set();
                  }),
              0u);
}

TEST(task_wakes, by_a_channel_allocate_nothing) {
    weft::channel<int> there, back(1);
    EXPECT_EQ(allocations_of_tasks(
                  [&]() -> task<> {
                      EXPECT_TRUE(co_await there.async_send(1));
                      EXPECT_TRUE(co_await back.async_recv());
                  },
                  [&]() -> task<> {
                      EXPECT_TRUE(co_await there.async_recv());
                      EXPECT_TRUE(co_await back.async_send(1));
                  }),
              0u);
}

TEST(task_wakes, by_a_select_allocate_nothing) {
    weft::channel<int> there, back, never_used;
    auto ignore = [](int) {};
    EXPECT_EQ(allocations_of_tasks(
                  [&]() -> task<> {
                      co_await weft::async_select(weft::on_send(there, 1),
                                                  weft::on_recv(never_used, ignore));
                      co_await weft::async_select(weft::on_recv(back, ignore),
                                                  weft::on_recv(never_used, ignore));
                  },
                  [&]() -> task<> {
                      co_await weft::async_select(weft::on_recv(there, ignore),
                                                  weft::on_recv(never_used, ignore));
                      co_await weft::async_select(weft::on_send(back, 1),
                                                  weft::on_recv(never_used, ignore));
                  }),
              0u);
}

TEST(task_wakes, by_an_event_source_allocate_nothing) {
    weft::event_source<int> there, back;
    EXPECT_EQ(allocations_of_tasks(
                  [&]() -> task<> {
                      there.set(1);
                      co_await back.latest();
                  },
                  [&]() -> task<> {
                      co_await there.latest();
                      back.set(2);
                  }),
              0u);
}

TEST(task_wakes, of_a_generator_that_awaits_allocate_nothing) {
    weft::auto_reset_event there, back;
    const auto elements = [](weft::auto_reset_event& e) -> weft::async_generator<int> {
        for (int i = 0;; ++i) {
            co_await e.async_wait();
            co_yield i;
        }
    };
    auto g = elements(back);
    EXPECT_EQ(allocations_of_tasks(
                  [&]() -> task<> {
                      there.set();
                      co_await g.next();
                  },
                  [&]() -> task<> {
                      co_await there.async_wait();
                      back.set();
                  }),
              0u);
}

// Deadlines that are armed for each wait and do not come.
TEST(task_wakes, before_a_deadline_allocate_nothing) {
    weft::auto_reset_event there, back;
    EXPECT_EQ(allocations_of_tasks(
                  [&]() -> task<> {
                      there.set();
                      auto comes = back.async_wait();
                      EXPECT_TRUE(co_await weft::with_timeout(comes, 1h));
                  },
                  [&]() -> task<> {
                      EXPECT_TRUE(co_await there.async_wait(weft::now() + 1h));
                      back.set();
                  }),
              0u);
}

// Deadlines that do come.
TEST(task_wakes, by_a_timer_allocate_nothing) {
    weft::testing::virtual_loop l(1);
    std::size_t allocated = ~std::size_t{0};
    run(l, rounds([]() -> task<> { co_await weft::sleep_for(1ms); }, &allocated));
    EXPECT_EQ(allocated, 0u);
}

// A fiber and a task wake each other.
TEST(task_wakes, by_a_fiber_allocate_nothing) {
    weft::loop l;
    weft::auto_reset_event there, back;
    std::size_t allocated = ~std::size_t{0};
    const auto round = [&]() -> task<> {
        there.set();
        co_await back.async_wait();
    };
    weft::detail::task_run<void> r(rounds(round, &allocated), l);
    r->post_first_turn();
    weft::fiber f(
        [&] {
            for (int i = 0; i < first_rounds + task_wakes / 2; ++i) there.wait(), back.set();
        },
        {.on = l});
    l.run();
    f.join();
    r.take();
    EXPECT_EQ(allocated, 0u);
}

}  // namespace
