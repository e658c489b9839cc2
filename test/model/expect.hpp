// Expectations of a report: the walk passed, or it found a fault.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/model.hpp"

namespace model {

inline constexpr bool bounded = true;

// The walk passed and is complete, unless the test states that its bound cuts something off.
inline void expect_right(const report& r, bool is_bounded = false) {
    EXPECT_TRUE(r.passed) << r.text;
    EXPECT_EQ(r.complete, r.passed && !is_bounded)
        << r.schedules << " schedules with up to " << r.deviations << " deviations";
}

inline void expect_found(const report& r, const std::string& what) {
    EXPECT_FALSE(r.passed) << r.schedules << " schedules, and none failed";
    EXPECT_NE(r.failure.find(what), std::string::npos) << r.text;
}

}  // namespace model
