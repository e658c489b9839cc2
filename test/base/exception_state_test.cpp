// The laws of the words themselves. What they mean for coroutines: test/coroutine/exceptions_test.
#include "weft/base/detail/exception_state.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <string>
#include <thread>

namespace weft::detail {
namespace {

TEST(exception_state, is_empty_without_exceptions_in_flight) {
    EXPECT_EQ(thread_exception_state().bits(), 0u);
    std::thread([] { EXPECT_EQ(thread_exception_state().bits(), 0u); }).join();
}

TEST(exception_state, is_separate_for_each_thread) {
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

// The words of a runtime: an exception's address is above the first 64 KiB.
TEST(exception_state, is_empty_only_when_both_words_are_zero) {
    EXPECT_EQ((exception_state{nullptr, 0}.bits()), 0u);
    EXPECT_NE((exception_state{nullptr, 1}.bits()), 0u);
    EXPECT_NE((exception_state{nullptr, 0xffff}.bits()), 0u);
    constexpr int address_bits = sizeof(void*) == 8 ? 47 : 31;
    for (int bit = 16; bit != address_bits; ++bit) {
        const std::uintptr_t at = std::uintptr_t{1} << bit;
        EXPECT_NE((exception_state{reinterpret_cast<void*>(at), 0}.bits()), 0u) << at;
    }
}

TEST(exception_state, counts_uncaught_exceptions) {
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

TEST(exception_state, is_put_aside_for_the_length_of_a_block) {
    try {
        throw 1;
    } catch (int) {
        {
            const exceptions_aside own;
            EXPECT_EQ(std::current_exception(), nullptr);
            EXPECT_EQ(thread_exception_state().bits(), 0u);
        }
        EXPECT_THROW(throw, int);
    }
}

TEST(exception_state, can_be_taken_and_restored) {
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
