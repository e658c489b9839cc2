#include "weft/stop/stop_root.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "weft/stop/stop_callback.hpp"
#include "weft/stop/stop_source.hpp"

namespace weft {
namespace {

static_assert(!std::is_copy_constructible_v<stop_root>);
static_assert(sizeof(void*) != 8 || sizeof(stop_root) * 2 <= sizeof(stop_source));

TEST(stop_root, only_the_first_request_counts) {
    stop_root root;
    EXPECT_FALSE(root.stop_requested());
    EXPECT_TRUE(root.request_stop(stop_reason::deadline));
    EXPECT_FALSE(root.request_stop());
    EXPECT_EQ(root.reason(), stop_reason::deadline);
    root.check();
}

TEST(stop_root, notifies_its_callbacks_and_child_sources) {
    stop_root root;
    stop_source child(root.get_token());
    stop_reason told = stop_reason::none, child_told = stop_reason::none;
    const stop_callback note(root.get_token(), [&](stop_reason r) { told = r; });
    const stop_callback child_note(child.get_token(), [&](stop_reason r) { child_told = r; });
    root.request_stop(stop_reason::shutdown);
    EXPECT_EQ(told, stop_reason::shutdown);
    EXPECT_EQ(child_told, stop_reason::shutdown);
    root.check();
}

}  // namespace
}  // namespace weft
