// tasks: the smallest ones, and how one that waits for nothing is run to its end.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "weft/task/task.hpp"

namespace tasks {

inline weft::task<int> number(int n) { co_return n; }
inline weft::task<> nothing() { co_return; }

template <class T>
T run_to_end(weft::task<T> t) {
    t.start();
    EXPECT_TRUE(t.done());
    return std::move(t).get();
}

}  // namespace tasks
