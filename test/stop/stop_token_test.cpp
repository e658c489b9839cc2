#include "weft/stop/stop_token.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "weft/stop/stop_source.hpp"

namespace weft {
namespace {

static_assert(std::is_trivially_copyable_v<stop_token>);
static_assert(sizeof(stop_token) == sizeof(void*));

TEST(stop_token, default_constructed_cannot_be_stopped) {
    constexpr stop_token none;
    EXPECT_FALSE(none.stop_possible());
    EXPECT_FALSE(none.stop_requested());
    EXPECT_EQ(none.reason(), stop_reason::none);
}

TEST(stop_token, reports_the_request_and_reason_of_its_source) {
    stop_source source;
    const stop_token token = source.get_token();
    const stop_token copy = token;
    EXPECT_TRUE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
    source.request_stop(stop_reason::shutdown);
    EXPECT_TRUE(copy.stop_requested());
    EXPECT_EQ(copy.reason(), stop_reason::shutdown);
}

TEST(stop_token, equals_the_tokens_of_the_same_source) {
    stop_source a;
    stop_source b;
    EXPECT_EQ(a.get_token(), a.get_token());
    EXPECT_NE(a.get_token(), b.get_token());
    EXPECT_NE(a.get_token(), stop_token());
    EXPECT_EQ(stop_token(), stop_token());
}

}  // namespace
}  // namespace weft
