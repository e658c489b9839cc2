#include "weft/hook/detail/proc_field.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace {

using weft::hook::ask_proc;

TEST(proc_field, reads_a_value_that_the_system_reports) {
    const int counter = ::eventfd(0x1f, EFD_CLOEXEC);
    const std::string about = "/proc/self/fdinfo/" + std::to_string(counter);
    std::uint64_t count = 0;
    EXPECT_TRUE(ask_proc(about.c_str(), "eventfd-count:", 16, count));
    EXPECT_EQ(count, 0x1fu);
    std::uint64_t places = 0;
    EXPECT_TRUE(ask_proc("/proc/self/status", "FDSize:", 10, places));
    EXPECT_GT(places, static_cast<std::uint64_t>(counter));
    ::close(counter);
}

TEST(proc_field, reports_a_missing_field_and_preserves_errno) {
    std::uint64_t n = 7;
    errno = 5;
    EXPECT_FALSE(ask_proc("/proc/self/status", "no such name:", 10, n));
    EXPECT_FALSE(ask_proc("/proc/self/no such file", "FDSize:", 10, n));
    EXPECT_EQ(n, 7u);
    EXPECT_EQ(errno, 5);
}

}  // namespace
