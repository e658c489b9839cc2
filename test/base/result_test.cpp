// result: a value, or the error code that came instead.
#include "weft/base/result.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using weft::failure;
using weft::result;

const auto full = std::make_error_code(std::errc::no_buffer_space);

result<std::string> greet(bool well) {
    if (well) return std::string("hello");
    return failure(std::errc::no_buffer_space);
}

result<void> store(bool well) {
    if (well) return {};
    return failure(std::errc::no_buffer_space);
}

TEST(result, with_a_value_has_a_zero_error_code) {
    const auto r = greet(true);
    EXPECT_TRUE(r);
    EXPECT_TRUE(r.has_value());
    EXPECT_EQ(*r, "hello");
    EXPECT_EQ(r->size(), 5U);
    EXPECT_FALSE(r.error());
}

TEST(result, of_a_failure_has_the_code_and_no_value) {
    const auto r = greet(false);
    EXPECT_FALSE(r);
    EXPECT_FALSE(r.has_value());
    EXPECT_EQ(r.error(), full);
}

TEST(result, failure_is_made_from_an_errc_or_a_code) {
    EXPECT_EQ(result<int>(failure(full)).error(), full);
    EXPECT_EQ(result<int>(failure(std::errc::no_buffer_space)).error(), full);
}

TEST(result, value_returns_the_value_or_throws_the_error_code) {
    auto well = greet(true);
    EXPECT_EQ(well.value(), "hello");
    const auto ill = greet(false);
    try {
        static_cast<void>(ill.value());
        ADD_FAILURE() << "value() of a failure returned";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), full);
    }
    EXPECT_THROW(static_cast<void>(greet(false).value()), std::system_error);
}

// Counts its moves; the destructor zeroes its content.
struct numbers {
    explicit numbers(int& m) : moves(&m) {}
    numbers(numbers&& other) noexcept : all(std::move(other.all)), moves(other.moves) { ++*moves; }
    ~numbers() { all.assign(all.size(), 0); }
    auto begin() { return all.begin(); }
    auto end() { return all.end(); }
    std::vector<int> all{1, 2, 3};
    int* moves;
};

TEST(result, value_of_a_temporary_outlives_a_range_for_loop) {
    int moves = 0;
    const auto read = [&] { return result<numbers>(std::in_place, moves); };
    int sum = 0;
    for (const int n : read().value()) sum += n;
    EXPECT_EQ(sum, 6);
    EXPECT_EQ(moves, 1);
    const numbers kept = read().value();
    EXPECT_EQ(moves, 2) << "one move, as by a reference";
}

TEST(result, value_works_for_a_nonmovable_type) {
    struct pinned {
        explicit pinned(int n) : number(n) {}
        pinned(const pinned&) = delete;
        int number;
    };
    EXPECT_EQ(result<pinned>(std::in_place, 7).value().number, 7);
}

TEST(result, value_or_returns_the_default_only_for_a_failure) {
    EXPECT_EQ(greet(true).value_or("other"), "hello");
    EXPECT_EQ(greet(false).value_or("other"), "other");
    const auto kept = greet(true);
    EXPECT_EQ(kept.value_or("other"), "hello");
    EXPECT_EQ(*kept, "hello");
}

TEST(result, value_can_be_modified) {
    auto r = greet(true);
    r->push_back('!');
    *r += '?';
    EXPECT_EQ(*r, "hello!?");
}

TEST(result, supports_move_only_types) {
    result<std::unique_ptr<int>> r = std::make_unique<int>(7);
    result<std::unique_ptr<int>> moved = std::move(r);
    const std::unique_ptr<int> taken = *std::move(moved);
    EXPECT_EQ(*taken, 7);
    const std::unique_ptr<int> other =
        result<std::unique_ptr<int>>(failure(full)).value_or(std::make_unique<int>(8));
    EXPECT_EQ(*other, 8);
}

TEST(result, destroys_its_value_once) {
    const auto counted = std::make_shared<int>(1);
    {
        result<std::shared_ptr<int>> r = counted;
        EXPECT_EQ(counted.use_count(), 2);
        r = failure(full);
        EXPECT_EQ(counted.use_count(), 1);
        r = counted;
        EXPECT_EQ(counted.use_count(), 2);
    }
    EXPECT_EQ(counted.use_count(), 1);
}

TEST(result, of_void_is_success_or_an_error_code) {
    EXPECT_TRUE(store(true));
    EXPECT_FALSE(store(true).error());
    EXPECT_NO_THROW(store(true).value());
    EXPECT_FALSE(store(false));
    EXPECT_EQ(store(false).error(), full);
    EXPECT_THROW(store(false).value(), std::system_error);
}

TEST(result, of_a_zero_error_code_is_still_a_failure) {
    EXPECT_FALSE(result<int>(failure(std::error_code{})));
    EXPECT_FALSE(result<void>(failure(std::error_code{})));
}

TEST(result, is_not_convertible_from_an_error_code) {
    EXPECT_FALSE((std::is_convertible_v<std::error_code, result<std::string>>));
    EXPECT_FALSE((std::is_convertible_v<std::error_code, result<void>>));
}

TEST(result, assigns_and_swaps_values_and_errors_in_any_mix) {
    using text = result<std::string>;
    const text states[] = {std::string("one"), std::string("two, and too long to lie within"),
                           failure(full), failure(std::errc::timed_out)};
    const auto same = [](const text& a, const text& b) {
        return a.has_value() == b.has_value() && (a ? *a == *b : a.error() == b.error());
    };
    for (const text& from : states)
        for (const text& to : states) {
            text copied = to;
            copied = from;
            EXPECT_TRUE(same(copied, from));
            text source = from, moved = to;
            moved = std::move(source);
            EXPECT_TRUE(same(moved, from));
            text a = from, b = to;
            std::swap(a, b);
            EXPECT_TRUE(same(a, to));
            EXPECT_TRUE(same(b, from));
        }
    for (const text& state : states) {
        text t = state;
        text& itself = t;
        t = itself;
        EXPECT_TRUE(same(t, state));
        std::swap(t, itself);
        EXPECT_TRUE(same(t, state));
    }
}

// What a server refuses with; no code of the system's.
enum class refusal { busy, unknown };
struct explained {
    explained(refusal w, std::string t) : why(w), text(std::move(t)) {}
    refusal why;
    std::string text;
};

TEST(result, supports_a_custom_error_type) {
    const auto call = [](bool well) -> result<std::string, refusal> {
        if (well) return std::string("reply");
        return failure(refusal::busy);
    };
    EXPECT_EQ(*call(true), "reply");
    const auto ill = call(false);
    EXPECT_FALSE(ill);
    EXPECT_EQ(ill.error(), refusal::busy);
    EXPECT_EQ(call(false).value_or("other"), "other");
}

TEST(result, distinguishes_value_and_error_of_the_same_type) {
    const result<int, int> well = 1;
    const result<int, int> ill = failure(1);
    EXPECT_TRUE(well);
    EXPECT_FALSE(ill);
    EXPECT_EQ(*well, ill.error());
}

TEST(result, emplaces_the_value_and_moves_the_error) {
    const result<std::string, explained> well(std::in_place, 3U, 'x');
    EXPECT_EQ(*well, "xxx");
    result<std::unique_ptr<int>, std::unique_ptr<int>> ill = failure(std::make_unique<int>(7));
    const std::unique_ptr<int> taken = std::move(ill).error();
    EXPECT_EQ(*taken, 7);
}

TEST(result, converts_the_failures_error_to_its_own_type) {
    const result<int, std::string> text = failure("too long");
    EXPECT_EQ(text.error(), "too long");
    const result<int, std::errc> bare = failure(std::errc::timed_out);
    EXPECT_EQ(bare.error(), std::errc::timed_out);
    EXPECT_FALSE((std::is_convertible_v<failure<std::string>, result<int, int>>));
}

TEST(result, value_throws_a_custom_error_as_bad_result) {
    const result<int, explained> ill = failure(explained(refusal::unknown, "no such player"));
    try {
        static_cast<void>(ill.value());
        ADD_FAILURE() << "value() of a failure returned";
    } catch (const weft::bad_result<explained>& e) {
        EXPECT_EQ(e.error.why, refusal::unknown);
        EXPECT_EQ(e.error.text, "no such player");
    }
}

TEST(result, of_void_supports_a_custom_error_type) {
    result<void, refusal> r;
    EXPECT_TRUE(r);
    r = failure(refusal::unknown);
    EXPECT_FALSE(r);
    EXPECT_EQ(r.error(), refusal::unknown);
    EXPECT_THROW(r.value(), weft::bad_result<refusal>);
}

TEST(result, assigns_and_swaps_types_of_different_size) {
    using mixed = result<std::array<char, 64>, char>;
    std::array<char, 64> wide{};
    wide.fill('w');
    const mixed states[] = {wide, failure('e'), std::array<char, 64>{}, failure('f')};
    const auto same = [](const mixed& a, const mixed& b) {
        return a.has_value() == b.has_value() && (a ? *a == *b : a.error() == b.error());
    };
    for (const mixed& from : states)
        for (const mixed& to : states) {
            mixed a = from, b = to;
            std::swap(a, b);
            EXPECT_TRUE(same(a, to));
            EXPECT_TRUE(same(b, from));
            a = from;
            EXPECT_TRUE(same(a, from));
        }
}

}  // namespace
