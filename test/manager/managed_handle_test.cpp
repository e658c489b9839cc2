#include "weft/manager/managed_handle.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "test/manager/managed.hpp"

using namespace std::chrono_literals;

namespace {

using weft::managed_handle;
using weft::testing::managed_world;

TEST(managed_handle, is_empty_by_default_and_for_unknown_ids) {
    managed_world w;
    EXPECT_FALSE(managed_handle<>());
    EXPECT_FALSE(w.m.find(0));
    EXPECT_FALSE(w.m.find(~std::uint64_t{0}));
    EXPECT_FALSE(w.m.find(1));
}

TEST(managed_handle, keeps_the_outcome_of_its_task) {
    std::weak_ptr<int> watched;
    managed_handle<> h;
    {
        managed_world w;
        auto value = std::make_shared<int>(7);
        watched = value;
        h = *w.m.spawn_with_handle([value = std::move(value)] { return value; }, {.name = "kept"});
        w.l.run();
    }
    EXPECT_TRUE(h.over());
    EXPECT_EQ(h.name(), "kept") << "also without the manager";
    EXPECT_STREQ(h.kind(), "fiber");
    EXPECT_FALSE(watched.expired());
    {
        const managed_handle<> copy = h;
        EXPECT_EQ(copy, h);
        h = managed_handle<>();
        EXPECT_FALSE(watched.expired());
        EXPECT_EQ(**copy.join<std::shared_ptr<int>>(), 7);
    }
    EXPECT_TRUE(watched.expired());
}

TEST(managed_handle, survives_moves_and_self_assignment) {
    managed_world w;
    auto h = *w.m.spawn_with_handle([]() -> weft::task<> { co_return; });
    auto& same = h;
    h = same;
    h = std::move(same);
    EXPECT_TRUE(h);
    EXPECT_STREQ(h.kind(), "coroutine");
    auto other = std::move(h);
    EXPECT_FALSE(h);
    EXPECT_EQ(other, w.m.find(other.id()));
    w.l.run();
    EXPECT_TRUE(other.over());
}

}  // namespace
