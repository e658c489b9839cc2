// invoke: calls what std::invoke calls, with the same type and the same noexcept.
#include "weft/base/detail/invoke.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace {

using weft::detail::invoke;

struct account {
    int balance = 7;
    int add(int n) { return balance += n; }
    int twice() const noexcept { return 2 * balance; }
    int taken() && { return std::exchange(balance, 0); }
};
struct savings : account {};

TEST(invoke, calls_functions_and_function_objects) {
    EXPECT_EQ(invoke([](int a, int b) { return a - b; }, 9, 4), 5);
    int (*negate)(int) = [](int n) { return -n; };
    EXPECT_EQ(invoke(negate, 3), -3);
    int calls = 0;
    const auto count = [&] { ++calls; };
    invoke(count);
    EXPECT_EQ(calls, 1);
}

TEST(invoke, applies_a_member_function_to_each_form_of_object) {
    savings s;
    const auto owned = std::make_unique<savings>();
    EXPECT_EQ(invoke(&account::add, s, 1), 8);
    EXPECT_EQ(invoke(&account::add, &s, 1), 9);
    EXPECT_EQ(invoke(&account::add, std::ref(s), 1), 10);
    EXPECT_EQ(invoke(&account::add, owned, 1), 8);
    EXPECT_EQ(invoke(&account::twice, std::cref(s)), 20);
    EXPECT_EQ(invoke(&account::taken, std::move(s)), 10);
    EXPECT_EQ(s.balance, 0);
}

TEST(invoke, applies_a_data_member_to_each_form_of_object) {
    savings s;
    const auto owned = std::make_unique<savings>();
    invoke(&account::balance, s) = 1;
    EXPECT_EQ(s.balance, 1);
    EXPECT_EQ(invoke(&account::balance, &s), 1);
    EXPECT_EQ(invoke(&account::balance, std::ref(s)), 1);
    EXPECT_EQ(invoke(&account::balance, owned), 7);
    static_assert(std::is_same_v<decltype(invoke(&account::balance, s)), int&>);
    static_assert(std::is_same_v<decltype(invoke(&account::balance, savings{})), int&&>);
    static_assert(
        std::is_same_v<decltype(invoke(&account::balance, std::as_const(s))), const int&>);
}

TEST(invoke, is_noexcept_and_constant_where_the_call_is) {
    constexpr auto safe = [](int n) noexcept { return n + 1; };
    constexpr auto unsafe = [](int n) { return n + 1; };
    static_assert(noexcept(invoke(safe, 1)));
    static_assert(!noexcept(invoke(unsafe, 1)));
    static_assert(noexcept(invoke(&account::twice, std::declval<account&>())));
    static_assert(!noexcept(invoke(&account::add, std::declval<account&>(), 1)));
    static_assert(invoke(unsafe, 1) == 2);
    static_assert(invoke(&account::balance, account{}) == 7);
}

}  // namespace
