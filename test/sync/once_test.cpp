#include "weft/sync/once.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class once_among : public weft::testing::among {};

TEST_P(once_among, one_caller_initialises_and_the_others_wait) {
    weft::once_flag flag;
    int value = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        const bool mine = co_await wait(flag.async_acquire());
        if (mine) {
            co_await wait(weft::sleep_for(1ms));
            ++value;
            flag.release(true);
        }
        EXPECT_EQ(value, 1);
    });
    EXPECT_TRUE(flag.is_done());
}

WEFT_INSTANTIATE_AMONG(once_among);

TEST(once, calls_with_arguments_once) {
    weft::once_flag flag;
    int sum = 0;
    for (int i = 0; i < 3; ++i) weft::call_once(flag, [&](int a, int b) { sum += a + b; }, 1, 2);
    EXPECT_EQ(sum, 3);
}

TEST(once, an_exception_lets_the_next_caller_try) {
    weft::loop l;
    weft::once_flag flag;
    int calls = 0, caught = 0;
    auto body = [&] {
        try {
            weft::call_once(flag, [&] {
                weft::this_fiber::yield();
                if (++calls < 3) throw std::runtime_error("not yet");
            });
        } catch (const std::runtime_error&) {
            ++caught;
        }
    };
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 5; ++i) fibers.emplace_back(body, weft::fiber_options{.on = l});
    l.run();
    for (auto& f : fibers) f.join();
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(caught, 2);
    EXPECT_TRUE(flag.is_done());
}

TEST(once_death, leave_without_enter) {
    EXPECT_DEATH(weft::once_flag().release(true),
                 "release.. of a once_flag that was not acquired .*once_test");
}

TEST(once_death, call_once_names_the_calling_line) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::once_flag flag;
            l.post([&] { weft::call_once(flag, [] {}); });
            l.run();
        },
        "weft: a blocking wait in what an executor runs .*once_test.cpp");
}

TEST(once, an_uncommitted_guard_lets_the_next_caller_try) {
    weft::loop l;
    weft::once_flag loaded;
    int tries = 0;
    const auto load = [&]() -> weft::task<> {
        if (!co_await loaded.async_acquire()) co_return;
        weft::once_guard mine(loaded);
        co_await weft::sleep_for(std::chrono::milliseconds(1));
        if (++tries == 1) throw std::runtime_error("not yet");
        mine.commit();
    };
    const auto body = [&]() -> weft::task<> {
        try {
            co_await load();
        } catch (const std::runtime_error&) {
        }
    };
    weft::task<> all[] = {body(), body(), body()};
    l.post([&] {
        for (auto& t : all) t.start();
    });
    l.run();
    for (auto& t : all) EXPECT_TRUE(t.done());
    EXPECT_TRUE(loaded.is_done());
    EXPECT_EQ(tries, 2);
}

}  // namespace
