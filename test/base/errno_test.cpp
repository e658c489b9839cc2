#include "weft/base/errno.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace {

TEST(errno_over_waits, is_read_and_written_by_the_accessors) {
    errno = 7;
    EXPECT_EQ(weft::get_errno(), 7);
    weft::set_errno(8);
    EXPECT_EQ(errno, 8);
    EXPECT_EQ(weft::fail_with(9), -1);
    EXPECT_EQ(errno, 9);
    EXPECT_EQ(weft::errno_here(), &errno);
}

TEST(errno_over_waits, is_restored_at_the_end_of_a_scope) {
    errno = 7;
    {
        const weft::kept_errno before;
        errno = 8;
    }
    EXPECT_EQ(errno, 7);
}

}  // namespace
