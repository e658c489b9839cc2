// The cost of a wake of a poll future: no allocation, whether the future is awaited or not.

#include <gtest/gtest.h>

#include "test/support/allocations.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/poll/poll_future.hpp"
#include "weft/sched/loop.hpp"
#include "weft/task/detail/task_run.hpp"

namespace {

// A million wakes; a tenth where nothing is optimised.
constexpr int poll_wakes = WEFT_DEBUG ? 100'000 : 1'000'000;

struct every_fourth {
    int looks = 0;
    weft::waker** interested = nullptr;
    void operator()(weft::poll_future<int>& f, weft::poll_context<every_fourth>& c) {
        if (interested != nullptr) *interested = &c;
        if (++looks % 4 == 0) f.set(looks);
    }
};

TEST(poll_wakes, of_direct_polls_allocate_nothing) {
    const std::size_t before = weft::testing::allocations();
    weft::poll_future<int, every_fourth> f;
    std::int64_t sum = 0;
    f.poll();
    for (int i = 0; i < poll_wakes; ++i) {
        f.context().wake();
        if (f.is_ready()) sum += f.take();
    }
    EXPECT_EQ(weft::testing::allocations(), before);
    EXPECT_EQ(f.data().looks, poll_wakes + 1);
    EXPECT_GT(sum, 0);
}

// A temporary for each iteration: the future, its context and the wait are stored in the frame.
TEST(poll_wakes, of_a_task_by_a_fiber_allocate_nothing) {
    weft::loop l;
    weft::waker* interested = nullptr;
    constexpr int rounds = poll_wakes / 4;
    std::size_t allocated = ~std::size_t{0};
    const auto body = [&]() -> weft::task<> {
        std::size_t before = 0;
        for (int i = 0; i < rounds; ++i) {
            if (i == 100) before = weft::testing::allocations();
            co_await weft::poll_future<int, every_fourth>(0, &interested);
        }
        allocated = weft::testing::allocations() - before;
    };
    weft::detail::task_run<void> t(body(), l);
    t->post_first_turn();
    weft::fiber f(
        [&] {
            for (int i = 0; i < rounds; ++i) {
                while (interested == nullptr) weft::this_fiber::yield();
                weft::waker& w = *std::exchange(interested, nullptr);
                for (int k = 0; k < 3; ++k) w.wake();
                interested = nullptr;
                weft::this_fiber::yield();
            }
        },
        {.on = l});
    l.run();
    f.join();
    t.take();
    EXPECT_EQ(allocated, 0u);
}

}  // namespace
