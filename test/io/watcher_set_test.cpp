#include "weft/io/detail/watcher_set.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "weft/io/io_driver.hpp"

namespace {

using weft::io_driver;
using weft::detail::watcher_set;

constexpr auto watches = watcher_set::watches;
constexpr auto serves = watcher_set::serves;

std::vector<std::unique_ptr<io_driver>> drivers(int count) {
    std::vector<std::unique_ptr<io_driver>> all;
    for (int i = 0; i != count; ++i) all.push_back(weft::make_io_driver(weft::io_kind::poll));
    return all;
}

int count_of(const watcher_set& s) {
    int n = 0;
    s.for_each([&](io_driver&, std::uintptr_t) { ++n; });
    return n;
}

TEST(watcher_set, recognises_its_only_driver) {
    const auto d = drivers(2);
    watcher_set s;
    EXPECT_FALSE(s.is_only(*d[0], watches));
    EXPECT_TRUE(s.add(*d[0], watches));
    EXPECT_TRUE(s.is_only(*d[0], watches));
    EXPECT_FALSE(s.is_only(*d[0], serves));
    EXPECT_FALSE(s.is_only(*d[1], watches));
    EXPECT_TRUE(s.add(*d[0], serves));
    EXPECT_TRUE(s.is_only(*d[0], serves));
    EXPECT_EQ(count_of(s), 1);
}

TEST(watcher_set, keeps_many_drivers_each_with_its_role) {
    const auto d = drivers(9);
    watcher_set s;
    for (const auto& each : d) EXPECT_TRUE(s.add(*each, watches));
    for (const auto& each : d) EXPECT_TRUE(s.add(*each, watches)) << "again";
    EXPECT_TRUE(s.add(*d[4], serves));
    EXPECT_EQ(count_of(s), 9);
    for (const auto& each : d) EXPECT_TRUE(s.has(*each, watches));
    EXPECT_TRUE(s.has(*d[4], serves));
    EXPECT_FALSE(s.has(*d[5], serves));
}

TEST(watcher_set, keeps_a_driver_that_refuses_when_it_watches_no_more) {
    for (const int count : {1, 3}) {
        const auto d = drivers(count);
        watcher_set s;
        for (const auto& each : d) EXPECT_TRUE(s.add(*each, watches));
        EXPECT_TRUE(s.add(*d[0], watcher_set::refuses));
        EXPECT_TRUE(s.remove(*d[0], watches));
        EXPECT_TRUE(s.has(*d[0], watcher_set::refuses));
        EXPECT_FALSE(s.has(*d[0], watches));
        EXPECT_TRUE(s.remove(*d[0], serves | watcher_set::refuses));
        EXPECT_EQ(count_of(s), count - 1);
    }
}

TEST(watcher_set, takes_selected_drivers_from_another_set) {
    for (const int count : {0, 1, 2, 9}) {
        const auto d = drivers(count);
        watcher_set from;
        for (const auto& each : d) EXPECT_TRUE(from.add(*each, watches));
        if (count > 1) {
            EXPECT_TRUE(from.add(*d[1], serves));
        }
        watcher_set all, some, none;
        all.take(from, [](io_driver&, std::uintptr_t) { return true; });
        EXPECT_EQ(count_of(from), 0);
        EXPECT_EQ(count_of(all), count);
        for (const auto& each : d) EXPECT_TRUE(all.has(*each, watches));
        some.take(all, [](io_driver&, std::uintptr_t what) { return (what & serves) != 0; });
        EXPECT_EQ(count_of(some), count > 1 ? 1 : 0);
        none.take(some, [](io_driver&, std::uintptr_t) { return false; });
        EXPECT_EQ(count_of(none), 0);
    }
}

TEST(watcher_set, removes_one_of_many) {
    const auto d = drivers(3);
    watcher_set s;
    for (const auto& each : d) EXPECT_TRUE(s.add(*each, watches));
    EXPECT_TRUE(s.add(*d[1], serves));
    EXPECT_TRUE(s.remove(*d[1], watches));
    EXPECT_FALSE(s.remove(*d[1], watches));
    EXPECT_TRUE(s.has(*d[1], serves));
    EXPECT_TRUE(s.remove(*d[1], serves));
    EXPECT_EQ(count_of(s), 2);
    EXPECT_TRUE(s.remove(*d[0], watches) && s.remove(*d[2], watches));
    EXPECT_EQ(count_of(s), 0);
    EXPECT_TRUE(s.add(*d[2], watches));
    EXPECT_TRUE(s.is_only(*d[2], watches)) << "as if it had never been a list";
}

TEST(watcher_set, is_empty_after_a_clear) {
    const auto d = drivers(3);
    watcher_set s;
    for (const auto& each : d) EXPECT_TRUE(s.add(*each, watches));
    s.clear();
    EXPECT_EQ(count_of(s), 0);
    EXPECT_FALSE(s.has(*d[0], watches));
}

}  // namespace
