// The laws of the words themselves. What they mean for coroutines: test/coroutine/exceptions_test.
#include "weft/context/exception_state.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <thread>

namespace weft::detail {
namespace {

TEST(exception_state, is_empty_where_nothing_is_in_flight) {
    EXPECT_EQ(thread_exception_state().bits(), 0u);
    std::thread([] { EXPECT_EQ(thread_exception_state().bits(), 0u); }).join();
}

TEST(exception_state, is_each_threads_own) {
    const exception_state* here = &thread_exception_state();
    EXPECT_EQ(here, &thread_exception_state());
    std::thread([=] { EXPECT_NE(here, &thread_exception_state()); }).join();
}

TEST(exception_state, is_not_empty_in_a_handler) {
    try {
        throw 1;
    } catch (int) {
        EXPECT_NE(thread_exception_state().bits(), 0u);
        EXPECT_NE(thread_exception_state().caught, nullptr);
    }
    EXPECT_EQ(thread_exception_state().bits(), 0u);
}

TEST(exception_state, counts_what_is_uncaught) {
    struct looks {
        std::uint64_t& bits;
        unsigned& uncaught;
        ~looks() {
            bits = thread_exception_state().bits();
            uncaught = thread_exception_state().uncaught;
        }
    };
    std::uint64_t bits = 0;
    unsigned uncaught = 0;
    try {
        const looks at_unwinding{bits, uncaught};
        throw 1;
    } catch (int) {
    }
    EXPECT_NE(bits, 0u);
    EXPECT_EQ(uncaught, 1u);
}

TEST(exception_state, taken_out_can_be_put_back) {
    try {
        throw std::string("first");
    } catch (const std::string&) {
        const exception_state kept = thread_exception_state().take();
        EXPECT_EQ(std::current_exception(), nullptr);
        try {
            throw 2;
        } catch (int) {
        }
        EXPECT_EQ(thread_exception_state().bits(), 0u);
        thread_exception_state() = kept;
        EXPECT_THROW(throw, std::string);
    }
}

}  // namespace
}  // namespace weft::detail
