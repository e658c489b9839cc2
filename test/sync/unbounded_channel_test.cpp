#include "weft/sync/unbounded_channel.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class unbounded_channel_among : public weft::testing::among {};

TEST_P(unbounded_channel_among, senders_never_wait_and_nothing_is_lost) {
    weft::unbounded_channel<std::unique_ptr<int>> c;
    std::vector<int> got;
    constexpr int count = 2000;
    run(
        [&](auto) -> weft::task<> {
            for (int i = 0; i < count; ++i) EXPECT_TRUE(c.send(std::make_unique<int>(i)));
            c.close();
            co_return;
        },
        [&](auto wait) -> weft::task<> {
            for (;;) {
                auto item = co_await wait(c.async_recv());
                if (!item) break;
                got.push_back(**item);
            }
        });
    ASSERT_EQ(got.size(), std::size_t{count});
    for (int i = 0; i < count; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

WEFT_INSTANTIATE_AMONG(unbounded_channel_among);

TEST(unbounded_channel, keeps_order_while_its_buffer_grows) {
    weft::unbounded_channel<int> c;
    int next = 0, expected = 0;
    for (int round = 1; round < 60; ++round) {  // the ring starts at any index when it grows
        for (int i = 0; i < 2 * round; ++i) EXPECT_TRUE(c.send(next++));
        for (int i = 0; i < round; ++i) EXPECT_EQ(*c.try_recv(), expected++);
    }
    EXPECT_EQ(c.size(), static_cast<std::size_t>(next - expected));
    c.close();
    EXPECT_EQ(c.send(0).error(), weft::errc::closed);
    for (int i : c) EXPECT_EQ(i, expected++);
    EXPECT_EQ(expected, next);
    EXPECT_EQ(c.recv(1ms).error(), weft::errc::closed);
}

}  // namespace
