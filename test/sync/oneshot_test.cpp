#include "weft/sync/oneshot.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class oneshot_among : public weft::testing::among {};

TEST_P(oneshot_among, carries_one_answer) {
    weft::oneshot<std::unique_ptr<int>> answer;
    run(
        [&](auto wait) -> weft::task<> {
            co_await wait(weft::sleep_for(0s));
            EXPECT_TRUE(answer.send(std::make_unique<int>(42)));
            EXPECT_EQ(answer.send(nullptr).error(), weft::errc::closed);
        },
        [&](auto wait) -> weft::task<> {
            auto got = co_await wait(answer.async_recv());
            EXPECT_EQ(**got, 42);
            auto again = co_await wait(answer.async_recv());
            EXPECT_EQ(again.error(), weft::errc::closed);
        });
}

WEFT_INSTANTIATE_AMONG(oneshot_among);

TEST(oneshot, can_be_closed_without_an_answer) {
    weft::oneshot<int> answer;
    EXPECT_EQ(answer.try_recv().error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(answer.recv(0s).error(), std::errc::timed_out);
    EXPECT_TRUE(answer.close());
    EXPECT_TRUE(answer.is_closed());
    EXPECT_EQ(answer.send(1).error(), weft::errc::closed);
    EXPECT_EQ(answer.recv().error(), weft::errc::closed);
}

TEST(oneshot, destroys_an_answer_that_was_not_received) {
    auto item = std::make_shared<int>(1);
    {
        weft::oneshot<std::shared_ptr<int>> answer;
        EXPECT_TRUE(answer.send(item));
        EXPECT_EQ(item.use_count(), 2);
    }
    EXPECT_EQ(item.use_count(), 1);
}

}  // namespace
