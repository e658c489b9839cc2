#include "weft/task/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <new>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "test/task/agents.hpp"
#include "test/task/small_stack.hpp"
#include "weft/base/detail/block_cache.hpp"

namespace {

using weft::elements_of;
using weft::generator;

static_assert(std::ranges::input_range<generator<int>>);
static_assert(std::ranges::view<generator<int>>);
static_assert(!std::ranges::forward_range<generator<int>>);
static_assert(!std::copyable<generator<int>>);
static_assert(std::is_same_v<std::ranges::range_reference_t<generator<int>>, int&&>);
static_assert(std::is_same_v<std::ranges::range_reference_t<generator<int&>>, int&>);
static_assert(std::is_same_v<std::ranges::range_reference_t<generator<const int&>>, const int&>);
static_assert(
    std::is_same_v<std::ranges::range_value_t<generator<const std::string&>>, std::string>);
static_assert(std::is_same_v<std::ranges::range_value_t<generator<std::string_view, std::string>>,
                             std::string>);
static_assert(
    std::is_same_v<std::ranges::range_reference_t<generator<std::string_view, std::string>>,
                   std::string_view>);

generator<int> count_up(int from, int to) {
    for (; from != to; ++from) co_yield from;
}

template <class Range>
auto all(Range&& r) {
    std::vector<std::ranges::range_value_t<Range>> v;
    for (auto&& e : r) v.emplace_back(std::forward<decltype(e)>(e));
    return v;
}

TEST(generator, yields_its_elements_in_order) {
    EXPECT_EQ(all(count_up(0, 4)), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(all(count_up(0, 0)), std::vector<int>{});
}

TEST(generator, computes_nothing_before_the_first_request) {
    int steps = 0;
    const auto body = [](int& n) -> generator<int> {
        for (;;) co_yield ++n;
    };
    generator<int> g = body(steps);
    EXPECT_EQ(steps, 0);
    auto i = g.begin();
    EXPECT_EQ(steps, 1);
    EXPECT_EQ(*i, 1);
    EXPECT_EQ(*i, 1);
    ++i;
    EXPECT_EQ(steps, 2);
    EXPECT_FALSE(i == g.end());
}

TEST(generator, works_in_pipelines_and_algorithms) {
    auto odd_squares = count_up(0, 1000) | std::views::filter([](int n) { return n % 2 == 1; }) |
                       std::views::transform([](int n) { return n * n; }) | std::views::take(3);
    EXPECT_EQ(all(odd_squares), (std::vector<int>{1, 9, 25}));
    generator<int> g = count_up(0, 10);
    EXPECT_EQ(*std::ranges::find(g, 7), 7);
}

TEST(generator, yields_references) {
    std::vector<int> v{1, 2, 3};
    const auto body = [](std::vector<int>& r) -> generator<int&> {
        for (int& n : r) co_yield n;
    };
    for (int& n : body(v)) n *= 2;
    EXPECT_EQ(v, (std::vector<int>{2, 4, 6}));
    const auto constant = [](const std::vector<int>& r) -> generator<const int&> {
        for (const int& n : r) co_yield n;
        co_yield 7;
    };
    std::vector<const int*> addresses;
    for (const int& n : constant(v)) addresses.push_back(&n);
    EXPECT_EQ(addresses[0], &v[0]);
    EXPECT_EQ(addresses[2], &v[2]);
}

TEST(generator, yields_move_only_values) {
    const auto body = []() -> generator<std::unique_ptr<int>> {
        for (int n = 0; n < 3; ++n) co_yield std::make_unique<int>(n);
    };
    int sum = 0;
    for (std::unique_ptr<int> p : body()) sum += *p;
    EXPECT_EQ(sum, 3);
}

TEST(generator, yields_a_copy_of_an_lvalue) {
    const auto body = []() -> generator<std::string> {
        const std::string constant = "constant";
        std::string variable = "variable";
        co_yield constant;
        co_yield variable;
        EXPECT_EQ(variable, "variable");
        co_yield std::move(variable);
    };
    EXPECT_EQ(all(body()), (std::vector<std::string>{"constant", "variable", "variable"}));
}

TEST(generator, yields_proxies_with_a_value_type_of_their_own) {
    const auto body = []() -> generator<std::string_view, std::string> {
        const std::string text = "a bc";
        co_yield std::string_view(text).substr(0, 1);
        co_yield std::string_view(text).substr(2);
    };
    EXPECT_EQ(all(body()), (std::vector<std::string>{"a", "bc"}));
}

// Nests.

struct node {
    int value;
    std::unique_ptr<node> left, right;
};
std::unique_ptr<node> tree(int from, int to) {
    if (from == to) return nullptr;
    const int middle = (from + to) / 2;
    return std::make_unique<node>(node{middle, tree(from, middle), tree(middle + 1, to)});
}
generator<const int&> in_order(const node& n) {
    if (n.left) co_yield elements_of(in_order(*n.left));
    co_yield n.value;
    if (n.right) co_yield elements_of(in_order(*n.right));
}

TEST(generator, yields_the_elements_of_inner_generators_in_order) {
    const auto t = tree(0, 1000);
    EXPECT_TRUE(std::ranges::equal(in_order(*t), std::views::iota(0, 1000)));
}

TEST(generator, yields_the_elements_of_any_range) {
    const auto body = []() -> generator<int> {
        std::vector<int> v(2, 1);
        co_yield elements_of(v);
        co_yield elements_of(std::vector<int>(2, 3));
        co_yield elements_of(std::views::iota(5, 7));
        co_yield elements_of(count_up(7, 9));
        co_yield elements_of(generator<int>());
    };
    EXPECT_EQ(all(body()), (std::vector<int>{1, 1, 3, 3, 5, 6, 7, 8}));
}

generator<int> nested(int depth, int value) {
    if (depth == 0)
        for (int n = 0; n < 100; ++n) co_yield value;
    else
        co_yield elements_of(nested(depth - 1, value));
}

TEST(generator, resumes_the_innermost_directly_at_any_depth) {
    // A resumption that went through all levels would take 10^7 of them here.
    on_small_stack([] {
        int sum = 0;
        for (int n : nested(100'000, 1)) sum += n;
        EXPECT_EQ(sum, 100);
    });
}

TEST(generator, a_million_empty_inner_generators_need_no_stack) {
    const auto body = []() -> generator<int> {
        for (int n = 0; n < 1'000'000; ++n) co_yield elements_of(count_up(0, 0));
        co_yield 1;
    };
    on_small_stack([&] { EXPECT_EQ(all(body()), std::vector<int>{1}); });
}

TEST(generator, inner_generators_may_have_another_allocator) {
    const auto inner = []() -> generator<int, void, std::allocator<std::byte>> { co_yield 2; };
    const auto outer = [&]() -> generator<int> {
        co_yield 1;
        co_yield elements_of(inner());
    };
    EXPECT_EQ(all(outer()), (std::vector<int>{1, 2}));
}

// Exceptions.

generator<int> throwing_after(int elements) {
    for (int n = 0; n < elements; ++n) co_yield n;
    throw std::runtime_error("generator");
}

TEST(generator, throws_where_the_element_was_requested) {
    generator<int> at_begin = throwing_after(0);
    EXPECT_THROW(std::ignore = at_begin.begin(), std::runtime_error);
    generator<int> g = throwing_after(1);
    auto i = g.begin();
    EXPECT_EQ(*i, 0);
    EXPECT_THROW(++i, std::runtime_error);
    EXPECT_TRUE(i == g.end());
}

TEST(generator, throws_an_inner_exception_from_the_yield_of_the_outer) {
    const auto outer = []() -> generator<int> {
        try {
            co_yield elements_of(throwing_after(2));
        } catch (const std::runtime_error&) {
        }
        co_yield 10;
        co_yield elements_of(throwing_after(1));
        ADD_FAILURE() << "goes on behind an exception";
    };
    std::vector<int> seen;
    EXPECT_THROW(for (int n : outer()) seen.push_back(n), std::runtime_error);
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 10, 0}));
}

// Life and death.

generator<int> logging_nest(std::string& log, char name) {
    logging l{&log, name};
    if (name != 'c') co_yield elements_of(logging_nest(log, static_cast<char>(name + 1)));
    co_yield 1;
}

TEST(generator, destroying_a_suspended_nest_destroys_the_innermost_first) {
    std::string log;
    {
        generator<int> g = logging_nest(log, 'a');
        std::ignore = g.begin();
        EXPECT_EQ(log, "");
    }
    EXPECT_EQ(log, "cba");
}

generator<int> holding(counted) {
    counted local;
    for (;;) co_yield 1;
}

TEST(generator, destroys_its_frame_once_in_every_state) {
    {
        generator<int> never_begun = holding({});
    }
    EXPECT_EQ(counted::living, 0);
    {
        generator<int> a = holding({});
        generator<int> b = holding({});
        std::ignore = a.begin();
        EXPECT_EQ(counted::living, 3);
        a = std::move(b);
        EXPECT_EQ(counted::living, 1);
        generator<int>& self = a;
        a = std::move(self);
        EXPECT_EQ(counted::living, 1);
        EXPECT_FALSE(b);
        EXPECT_TRUE(a);
    }
    EXPECT_EQ(counted::living, 0);
}

TEST(generator, an_inner_generator_is_destroyed_when_its_yield_is_done) {
    const auto outer = []() -> generator<int> {
        const auto inner = [](counted) -> generator<int> { co_yield 1; };
        co_yield elements_of(inner({}));
        EXPECT_EQ(counted::living, 0);
        co_yield 2;
    };
    EXPECT_EQ(all(outer()), (std::vector<int>{1, 2}));
}

TEST(generator, frames_are_taken_from_the_cache_and_returned) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    const auto make = [](int n) WEFT_NOINLINE -> generator<int> { co_yield n; };
    const std::size_t before = weft::detail::block_cache::stats().used_bytes;
    {
        generator<int> g = make(1);
        EXPECT_GT(weft::detail::block_cache::stats().used_bytes, before);
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, before);
}

TEST(generator, frames_come_from_the_passed_allocator) {
    struct counting_resource : std::pmr::memory_resource {
        int live = 0;
        void* do_allocate(std::size_t bytes, std::size_t align) override {
            ++live;
            return ::operator new(bytes, std::align_val_t(align));
        }
        void do_deallocate(void* p, std::size_t, std::size_t align) override {
            --live;
            ::operator delete(p, std::align_val_t(align));
        }
        bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
    } resource;
    const auto make = [](std::allocator_arg_t, std::pmr::polymorphic_allocator<>, int n)
                          WEFT_NOINLINE -> generator<int> {
        for (int k = 0; k < n; ++k) co_yield k;
    };
    {
        generator<int> g = make(std::allocator_arg, &resource, 3);
        EXPECT_EQ(resource.live, 1);
        EXPECT_EQ(all(g), (std::vector<int>{0, 1, 2}));
    }
    EXPECT_EQ(resource.live, 0);
}

// Rules that are checked.

TEST(generator_death, second_begin_is_refused) {
    generator<int> g = count_up(0, 3);
    std::ignore = g.begin();
    EXPECT_DEATH(std::ignore = g.begin(), "second begin of a generator.*generator_test.cpp");
}

TEST(generator_death, begin_of_an_empty_generator_is_refused) {
    EXPECT_DEATH(std::ignore = generator<int>().begin(), "begin of an empty generator");
}

TEST(generator_death, elements_of_a_started_generator_is_refused) {
    const auto outer = []() -> generator<int> {
        generator<int> inner = count_up(0, 3);
        std::ignore = inner.begin();
        co_yield elements_of(std::move(inner));
    };
    EXPECT_DEATH(all(outer()), "elements_of a generator that has begun");
}

}  // namespace
