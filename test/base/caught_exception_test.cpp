#include "weft/base/detail/caught_exception.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "test/support/cancelled_thread.hpp"

#if WEFT_EXCEPTIONS

namespace weft::detail {
namespace {

TEST(caught_exception, keeps_what_was_thrown) {
    std::exception_ptr kept;
    try {
        throw std::runtime_error("this");
    } catch (...) {
        kept = caught_exception();
    }
    try {
        std::rethrow_exception(kept);
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "this");
    }
    try {
        throw 7;
    } catch (...) {
        kept = caught_exception();
    }
    EXPECT_THROW(std::rethrow_exception(kept), int);
}

#if !WEFT_WINDOWS  // no cancellation of a thread unwinds it there
// By a thread that is cancelled: what it keeps is never assigned.
TEST(caught_exception, lets_a_forced_unwind_continue) {
    bool has_kept = false;
    bool went_on = false;
    EXPECT_TRUE(testing::is_cancelled_in([&] {
        struct at_end {
            bool& is_reached;
            ~at_end() { is_reached = true; }
        } const a{went_on};
        try {
            ::pthread_testcancel();
        } catch (...) {
            static_cast<void>(caught_exception());
            has_kept = true;
        }
    }));
    EXPECT_TRUE(went_on);
    EXPECT_FALSE(has_kept);
}
#endif

}  // namespace
}  // namespace weft::detail

#endif
