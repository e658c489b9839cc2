#include "weft/wait/awaitable.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "weft/wait/sleep.hpp"

namespace {

struct plain {
    bool await_ready() { return true; }
    void await_suspend(std::coroutine_handle<>) {}
    int await_resume() { return 1; }
};
struct by_member {
    plain operator co_await() { return {}; }
};
struct by_rvalue_member {
    plain operator co_await() && { return {}; }
};
struct by_function {};
struct text_awaiter : plain {
    std::string& await_resume();
};
text_awaiter operator co_await(by_function) { return {}; }
struct of_unique {
    bool await_ready();
    bool await_suspend(std::coroutine_handle<>);
    std::unique_ptr<int>&& await_resume();
};
struct lacks_resume {
    bool await_ready();
    void await_suspend(std::coroutine_handle<>);
};

// By itself, through a member, through a function that its namespace has.
static_assert(weft::awaitable<plain> && weft::awaitable<plain&>);
static_assert(weft::awaitable<by_member> && weft::awaitable<by_member&>);
static_assert(weft::awaitable<by_rvalue_member> && !weft::awaitable<by_rvalue_member&>);
static_assert(weft::awaitable<by_function>);
static_assert(weft::awaitable<weft::sleep_operation>);
static_assert(!weft::awaitable<lacks_resume> && !weft::awaitable<int>);
static_assert(!weft::awaitable<const by_member&>);

static_assert(std::is_same_v<weft::await_result_t<plain>, int>);
static_assert(std::is_same_v<weft::await_result_t<by_member&>, int>);
static_assert(std::is_same_v<weft::await_result_t<by_rvalue_member>, int>);
static_assert(std::is_same_v<weft::await_result_t<by_function>, std::string&>);
static_assert(std::is_same_v<weft::await_result_t<of_unique>, std::unique_ptr<int>&&>);
static_assert(std::is_same_v<weft::await_result_t<weft::sleep_operation>, void>);

TEST(awaitable, awaiter_of_finds_what_the_compiler_would) {
    plain p;
    EXPECT_EQ(&weft::detail::awaiter_of(p), &p);
    EXPECT_EQ(weft::detail::awaiter_of(by_member()).await_resume(), 1);
    EXPECT_EQ(weft::detail::awaiter_of(by_rvalue_member()).await_resume(), 1);
    EXPECT_TRUE(weft::detail::awaiter_of(by_function()).await_ready());
}

}  // namespace
