#include "weft/sync/broadcast.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class broadcast_among : public weft::testing::among {};

TEST_P(broadcast_among, delivers_every_item_to_every_receiver) {
    weft::broadcast<std::string> b(1000);
    std::vector<std::unique_ptr<weft::broadcast<std::string>::receiver>> receivers;
    for (int i = 0; i < 3; ++i)
        receivers.push_back(std::make_unique<weft::broadcast<std::string>::receiver>(b));
    std::atomic<std::size_t> next{0};
    run_many(4, [&](auto wait) -> weft::task<> {
        const std::size_t me = next++;
        if (me == 3) {
            for (int i = 0; i < 200; ++i) EXPECT_TRUE(b.send(std::to_string(i)));
            b.close();
            co_return;
        }
        for (int i = 0; i < 200; ++i) {
            auto item = co_await wait(receivers[me]->async_recv());
            EXPECT_EQ(*item, std::to_string(i));
        }
        auto end = co_await wait(receivers[me]->async_recv());
        EXPECT_EQ(end.error(), weft::errc::closed);
    });
}

WEFT_INSTANTIATE_AMONG(broadcast_among);

TEST(broadcast, a_slow_receiver_gets_lagged_once_then_the_oldest_item) {
    weft::broadcast<int> b(4);
    weft::broadcast<int>::receiver slow(b);
    for (int i = 0; i < 7; ++i) EXPECT_TRUE(b.send(i));
    weft::broadcast<int>::receiver late(b);
    EXPECT_EQ(slow.recv().error(), weft::errc::lagged);
    EXPECT_EQ(slow.missed(), 3u);
    for (int i = 3; i < 7; ++i) EXPECT_EQ(*slow.recv(), i);
    EXPECT_EQ(slow.try_recv().error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(slow.recv(1ms).error(), std::errc::timed_out);
    EXPECT_TRUE(b.send(7));
    EXPECT_EQ(*late.recv(), 7) << "only what was sent after it came";
    EXPECT_TRUE(b.close());
    EXPECT_EQ(b.send(8).error(), weft::errc::closed);
    EXPECT_EQ(*slow.recv(), 7);
    EXPECT_EQ(slow.recv().error(), weft::errc::closed);
}

TEST(broadcast_death, zero_capacity) {
    EXPECT_DEATH(weft::broadcast<int>(0), "a broadcast that keeps no item .*broadcast_test");
}

TEST(broadcast_death, a_second_wait_on_one_receiver) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::broadcast<int> b(1);
            weft::broadcast<int>::receiver r(b);
            weft::fiber one([&] { static_cast<void>(r.recv()); }, {.on = l});
            weft::fiber two([&] { static_cast<void>(r.recv()); }, {.on = l});
            l.run();
        },
        "two wait at one receiver of a broadcast\n");
}

TEST(broadcast_death, try_recv_during_a_wait_on_the_same_receiver) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::broadcast<int> b(1);
            weft::broadcast<int>::receiver r(b);
            weft::fiber f([&] { static_cast<void>(r.recv()); }, {.on = l});
            l.run_until_idle();
            static_cast<void>(r.try_recv());
        },
        "two wait at one receiver of a broadcast");
}

}  // namespace
