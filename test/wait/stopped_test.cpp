#include "weft/wait/stopped.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <type_traits>

namespace weft {
namespace {

static_assert(!std::is_base_of_v<std::exception, stopped>);

TEST(stopped, is_not_caught_as_std_exception_and_carries_a_reason) {
    stop_reason seen = stop_reason::none;
    try {
        try {
            detail::throw_stopped(stop_reason::shutdown);
        } catch (const std::exception&) {
            FAIL();
        }
    } catch (const stopped& s) {
        seen = s.reason;
    }
    EXPECT_EQ(seen, stop_reason::shutdown);
}

}  // namespace
}  // namespace weft
