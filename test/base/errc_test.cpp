#include "weft/base/errc.hpp"

#include <gtest/gtest.h>

#include "weft/base/result.hpp"

namespace {

TEST(errc, is_an_error_code_with_a_message) {
    const std::error_code e = weft::errc::closed;
    EXPECT_EQ(e, weft::errc::closed);
    EXPECT_NE(e, weft::errc::lagged);
    EXPECT_NE(e, std::errc::operation_canceled);
    EXPECT_STREQ(e.category().name(), "weft");
    EXPECT_EQ(e.message(), "closed");
    EXPECT_EQ(make_error_code(weft::errc::lagged).message(), "items were missed");
    EXPECT_EQ(make_error_code(weft::errc::broken_promise).message(), "broken promise");
    EXPECT_EQ(make_error_code(weft::errc::too_few_results).message(),
              "too few results satisfied the predicate");
}

TEST(errc, converts_to_a_failed_result) {
    const weft::result<int> r = weft::failure(weft::errc::closed);
    EXPECT_EQ(r.error(), weft::errc::closed);
}

}  // namespace
