#include "weft/stop/std_stop.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace weft {
namespace {

TEST(from_std_stop, forwards_the_request_with_its_reason) {
    std::stop_source outer;
    stop_source inner;
    from_std_stop link(outer.get_token(), inner, stop_reason::shutdown);
    EXPECT_FALSE(inner.stop_requested());
    outer.request_stop();
    EXPECT_EQ(inner.reason(), stop_reason::shutdown);
}

TEST(from_std_stop, forwards_an_earlier_request) {
    std::stop_source outer;
    outer.request_stop();
    stop_source inner;
    from_std_stop link(outer.get_token(), inner);
    EXPECT_EQ(inner.reason(), stop_reason::user);
}

TEST(from_std_stop, forwards_nothing_after_its_destruction) {
    std::stop_source outer;
    stop_source inner;
    {
        from_std_stop link(outer.get_token(), inner);
    }
    outer.request_stop();
    EXPECT_FALSE(inner.stop_requested());
}

TEST(from_std_stop, stops_the_body_of_a_jthread) {
    stop_reason seen = stop_reason::none;
    {
        std::jthread thread([&seen](std::stop_token outer) {
            stop_source inner;
            from_std_stop link(outer, inner);
            while (!inner.stop_requested()) std::this_thread::yield();
            seen = inner.reason();
        });
    }
    EXPECT_EQ(seen, stop_reason::user);
}

TEST(to_std_stop, forwards_the_request) {
    stop_source inner;
    to_std_stop link(inner.get_token());
    int calls = 0;
    std::stop_callback counted(link.get_token(), [&] { ++calls; });
    EXPECT_TRUE(link.get_token().stop_possible());
    EXPECT_FALSE(link.get_token().stop_requested());
    inner.request_stop();
    EXPECT_TRUE(link.get_token().stop_requested());
    EXPECT_EQ(calls, 1);
}

TEST(to_std_stop, forwards_an_earlier_request) {
    stop_source inner;
    inner.request_stop();
    EXPECT_TRUE(to_std_stop(inner.get_token()).get_token().stop_requested());
}

TEST(to_std_stop, destroyed_leaves_a_token_that_cannot_be_stopped) {
    stop_source inner;
    std::optional<to_std_stop> link(inner.get_token());
    const std::stop_token left = link->get_token();
    link.reset();
    inner.request_stop();
    EXPECT_FALSE(left.stop_possible());
    EXPECT_FALSE(left.stop_requested());
}

TEST(to_std_stop, and_back_forwards_a_single_request) {
    stop_source inner;
    to_std_stop out(inner.get_token());
    stop_source far;
    from_std_stop in(out.get_token(), far, stop_reason::deadline);
    inner.request_stop(stop_reason::shutdown);
    EXPECT_EQ(far.reason(), stop_reason::deadline);
}

}  // namespace
}  // namespace weft
