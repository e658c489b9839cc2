#include "weft/unwind/fast_unwind/fast_unwind.hpp"

#include <stdexcept>

#include "test/unwind/unwind_harness.hpp"

// The laws of unwind_test, in a program that links weft::fast_unwind.

using namespace unwind_test;

TEST(fast_unwind, is_linked_into_this_program) { EXPECT_TRUE(weft::fast_unwind::is_linked()); }

TEST(fast_unwind, does_not_affect_ordinary_exceptions) {
    log_of_ints log;
    for (int i = 0; i != 3; ++i) {
        try {
            noted object{log, i};
            throw std::runtime_error("ordinary");
        } catch (const std::runtime_error&) {
        }
    }
    EXPECT_EQ(log, range(3));
}

TEST(fast_unwind, kills_identically_when_enabled_and_disabled) {
    for (const bool on : {false, true, false, true}) {
        weft::fast_unwind::enable(on);
        victim k(way::walked);
        log_of_ints log;
        EXPECT_EQ(run(k, [&] { descend(k, log, 20); }), outcome::finished);
        EXPECT_EQ(log, range(20));
    }
}
