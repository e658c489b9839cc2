#include "weft/manager/end_error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

enum class fault { late, gone };
struct untold {};

}  // namespace

template <>
struct weft::end_error<fault> {
    static fault of(std::error_code why) noexcept {
        return why == std::errc::timed_out ? fault::late : fault::gone;
    }
};

namespace {

using weft::detail::outcome_of;
using weft::detail::outcome_t;

TEST(end_error, flattens_a_result_whose_error_can_express_the_end) {
    static_assert(std::is_same_v<outcome_t<int>, weft::result<int>>);
    static_assert(std::is_same_v<outcome_t<void>, weft::result<void>>);
    static_assert(std::is_same_v<outcome_t<weft::result<int>>, weft::result<int>>);
    static_assert(std::is_same_v<outcome_t<weft::result<int, fault>>, weft::result<int, fault>>);
    static_assert(std::is_same_v<outcome_t<weft::result<int, untold>>,
                                 weft::result<weft::result<int, untold>>>);
}

TEST(end_error, is_converted_to_a_user_defined_error) {
    using outcome = outcome_of<weft::result<int, fault>>;
    EXPECT_EQ(outcome::failed(std::make_error_code(std::errc::timed_out)).error(), fault::late);
    EXPECT_EQ(outcome::failed(std::make_error_code(std::errc::operation_canceled)).error(),
              fault::gone);
    EXPECT_EQ(outcome_of<std::string>::failed(std::make_error_code(std::errc::timed_out)).error(),
              std::errc::timed_out);
}

}  // namespace
