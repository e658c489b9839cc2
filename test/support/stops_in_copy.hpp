// A value whose copy takes two turns of a coroutine, and the abort of a kill in between where the
// caller is noexcept.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "weft/coroutine/coroutine.hpp"

namespace weft::testing {

struct stops_in_copy {
    bool is_copy = false;
    stops_in_copy() = default;
    stops_in_copy(const stops_in_copy& other) : is_copy(true) {
        if (!other.is_copy) this_coroutine::yield();
    }
};

// f copies one that is no copy, once. It is let end.
template <class F>
void expect_no_kill_in_copy(F&& f) {
    coroutine<void()> c(std::forward<F>(f));
    c.resume();
    ASSERT_FALSE(c.done());
    EXPECT_DEATH(c.kill(), "kill of a coroutine is refused: a noexcept function is in the way");
    c.resume();
    EXPECT_TRUE(c.done());
}

}  // namespace weft::testing
