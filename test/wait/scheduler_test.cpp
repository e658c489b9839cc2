#include "weft/wait/scheduler.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "test/support/manual_executor.hpp"

namespace {

using weft::scheduler_ref;
using weft::testing::manual_executor;

struct options {
    int before = 0;
    scheduler_ref on = {};
};

static_assert(std::is_trivially_copyable_v<scheduler_ref>);
static_assert(sizeof(scheduler_ref) == sizeof(void*));
static_assert(std::is_convertible_v<weft::executor&, scheduler_ref>);
static_assert(!std::is_convertible_v<weft::executor*, scheduler_ref>);
static_assert(!std::is_convertible_v<weft::executor, scheduler_ref>);

TEST(scheduler_ref, names_nothing_by_default) {
    EXPECT_FALSE(options().on);
    EXPECT_EQ(options().on.get(), nullptr);
}

TEST(scheduler_ref, names_a_scheduler_in_options) {
    manual_executor e;
    const options o{.on = e};
    EXPECT_TRUE(o.on);
    EXPECT_EQ(o.on.get(), &e);
    EXPECT_EQ(&*o.on, &e);
}

}  // namespace
