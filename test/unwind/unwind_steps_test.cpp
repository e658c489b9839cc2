#include "weft/unwind/detail/unwind_steps.hpp"

#include <gtest/gtest.h>

#include <exception>

using weft::detail::raise;
using weft::detail::recount;
using weft::detail::settle;
using weft::detail::unwinding;

TEST(unwind_steps, counts_one_uncaught_exception_from_raise_to_settle) {
    unwinding u;
    raise(u);
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    EXPECT_EQ(u.exception, &u.header);
    settle(u);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    settle(u);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(unwind_steps, recounts_what_a_rethrow_counted_twice) {
    unwinding u;
    raise(u);
    recount(u);
    recount(u);
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    settle(u);
}

TEST(unwind_steps, passes_its_stop_function_and_itself_to_the_unwinder) {
    unwinding u;
    raise(u);
    EXPECT_EQ(u.header.stop, reinterpret_cast<std::uintptr_t>(&weft_unwind_stop));
    EXPECT_EQ(u.header.stop_argument, reinterpret_cast<std::uintptr_t>(&u));
    settle(u);
}

// But not under ARM's EHABI, where the runtime would make another of it.
TEST(unwind_steps, raises_a_runtime_exception_inside_a_handler) {
    unwinding u;
    try {
        throw 1;
    } catch (int) {
        raise(u);
        EXPECT_EQ(u.exception == &u.header, WEFT_ARM != 0);
        EXPECT_EQ(u.exception->stop_argument, reinterpret_cast<std::uintptr_t>(&u));
        settle(u);
        EXPECT_EQ(u.exception, nullptr);
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}
