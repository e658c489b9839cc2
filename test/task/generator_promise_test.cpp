#include "weft/task/detail/generator_promise.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <type_traits>
#include <vector>

#include "weft/task/generator.hpp"

namespace {

using weft::elements_of;
using weft::generator;
using weft::detail::generator_promise;

template <class G, class... Args>
using generator_promise_of = typename std::coroutine_traits<G, Args...>::promise_type;

// Generators of one reference type share a promise, so that they nest whatever their allocators.
static_assert(std::is_same_v<generator_promise_of<generator<int>>, generator_promise<int&&>>);
static_assert(std::is_same_v<generator_promise_of<generator<int&&>>, generator_promise<int&&>>);
static_assert(std::is_same_v<generator_promise_of<generator<int&>, long>, generator_promise<int&>>);
static_assert(
    std::is_base_of_v<generator_promise<int&&>,
                      generator_promise_of<generator<int, void, std::allocator<char>>, long>>);
static_assert(std::is_base_of_v<generator_promise<int&&>,
                                generator_promise_of<generator<int>, std::allocator_arg_t,
                                                     const std::allocator<char>&, long>>);

// A generator awaits nothing.
template <class Promise>
concept awaits = requires(Promise p) { p.await_transform(std::suspend_always{}); };
static_assert(!awaits<generator_promise<int&&>>);

// What may be yielded.
template <class Promise, class T>
concept yields = requires(Promise p, T t) { p.yield_value(std::forward<T>(t)); };
static_assert(yields<generator_promise<int&>, int&>);
static_assert(!yields<generator_promise<int&>, const int&>);
static_assert(!yields<generator_promise<int&>, int>);
static_assert(yields<generator_promise<std::unique_ptr<int>&&>, std::unique_ptr<int>>);
static_assert(!yields<generator_promise<std::unique_ptr<int>&&>, const std::unique_ptr<int>&>);
static_assert(yields<generator_promise<int&>, elements_of<std::vector<int>&>>);
static_assert(!yields<generator_promise<int&>, elements_of<const std::vector<int>&>>);
static_assert(!yields<generator_promise<int&>, elements_of<generator<int>&&>>);
static_assert(yields<generator_promise<int&>, elements_of<generator<int&>&&>>);

TEST(generator_promise, elements_of_refers_to_its_range) {
    std::vector<int> v;
    EXPECT_EQ(&elements_of(v).range, &v);
    static_assert(std::is_same_v<decltype(elements_of(v)), elements_of<std::vector<int>&>>);
    static_assert(
        std::is_same_v<decltype(elements_of(std::vector<int>())), elements_of<std::vector<int>&&>>);
}

}  // namespace
