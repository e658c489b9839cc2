#include "weft/manager/manager_errc.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "weft/manager/managed_status.hpp"

namespace {

using weft::managed_status;
using weft::manager_errc;

TEST(manager_errc, has_a_distinct_message_for_each_value) {
    std::set<std::string> texts;
    constexpr int count = static_cast<int>(manager_errc::value_already_taken);
    for (int i = 1; i <= count; ++i)
        texts.insert(make_error_code(static_cast<manager_errc>(i)).message());
    EXPECT_EQ(texts.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(texts.count("unknown"), 0u);
    EXPECT_EQ(make_error_code(static_cast<manager_errc>(count + 1)).message(), "unknown");
}

TEST(manager_errc, compares_with_error_codes) {
    const std::error_code c = manager_errc::killed;
    EXPECT_EQ(c, manager_errc::killed);
    EXPECT_NE(c, manager_errc::no_such_task);
    EXPECT_STREQ(c.category().name(), "weft.manager");
}

TEST(managed_status, is_final_from_done_on) {
    for (const auto s : {managed_status::created, managed_status::running, managed_status::waiting})
        EXPECT_FALSE(weft::is_final(s));
    for (const auto s : {managed_status::done, managed_status::cancelled, managed_status::killed,
                         managed_status::timed_out})
        EXPECT_TRUE(weft::is_final(s));
}

TEST(managed_status, has_a_name_and_an_error) {
    EXPECT_STREQ(weft::name_of(managed_status::timed_out), "timed_out");
    EXPECT_STREQ(weft::name_of(managed_status::created), "created");
    EXPECT_FALSE(weft::make_error_of(managed_status::done));
    EXPECT_EQ(weft::make_error_of(managed_status::cancelled), std::errc::operation_canceled);
    EXPECT_EQ(weft::make_error_of(managed_status::killed), manager_errc::killed);
    EXPECT_EQ(weft::make_error_of(managed_status::timed_out), std::errc::timed_out);
}

}  // namespace
