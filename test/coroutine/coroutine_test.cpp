// The laws of coroutine<Out(In)> as a value: what goes in and out, and what it reports of itself.
// Misuse, kill, lifetimes and transfers have files of their own.
#include "weft/coroutine/coroutine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "test/coroutine/counted.hpp"

namespace weft {
namespace {

using coroutine_test::counting_stacks;

static_assert(!std::is_copy_constructible_v<coroutine<>>);
static_assert(std::is_nothrow_move_constructible_v<coroutine<>>);
static_assert(std::is_nothrow_move_assignable_v<coroutine<>>);
static_assert(sizeof(coroutine<int(std::string)>) == sizeof(void*));
static_assert(!std::is_constructible_v<coroutine<int()>, void (*)(int, int)>);

TEST(coroutine, alternates_with_its_resumer) {
    std::string order;
    coroutine<> c([&] {
        order += 'a';
        this_coroutine::yield();
        order += 'b';
    });
    order += '1';
    c.resume();
    order += '2';
    c.resume();
    order += '3';
    EXPECT_EQ(order, "1a2b3");
}

TEST(coroutine, passes_yielded_and_returned_values_to_its_resumer) {
    coroutine<int()> c([] {
        this_coroutine::yield<int()>(1);
        coroutine<int()>::yield(2);
        return 3;
    });
    EXPECT_EQ(c.resume(), 1);
    EXPECT_EQ(c.resume(), 2);
    EXPECT_FALSE(c.done());
    EXPECT_EQ(c.resume(), 3);
    EXPECT_TRUE(c.done());
}

TEST(coroutine, receives_the_first_value_as_argument_then_from_yield) {
    coroutine<std::string(std::string)> c([](std::string first) {
        std::string second = this_coroutine::yield<std::string(std::string)>(first + first);
        std::string third = this_coroutine::yield<std::string(std::string)>(first + second);
        return first + second + third;
    });
    const std::string tail(100, 'z');
    EXPECT_EQ(c.resume("a"), "aa");
    EXPECT_EQ(c.resume("b"), "ab");
    EXPECT_EQ(c.resume(tail), "ab" + tail);
}

TEST(coroutine, accepts_values_without_returning_any) {
    std::vector<int> seen;
    coroutine<void(int)> c([&](int n) {
        for (int i = 0; i < 3; ++i) {
            seen.push_back(n);
            n = coroutine<void(int)>::yield();
        }
    });
    for (int n : {4, 5, 6}) c.resume(n);
    EXPECT_EQ(seen, (std::vector{4, 5, 6}));
}

TEST(coroutine, passes_move_only_values_both_ways) {
    using boxed = std::unique_ptr<int>;
    coroutine<boxed(boxed)> c([](boxed p) {
        for (;;) {
            ++*p;
            p = this_coroutine::yield<boxed(boxed)>(std::move(p));
        }
        return boxed();
    });
    boxed one = std::make_unique<int>(1);
    const int* address = one.get();
    boxed back = c.resume(std::move(one));
    EXPECT_EQ(one, nullptr);
    back = c.resume(std::move(back));
    EXPECT_EQ(back.get(), address);
    EXPECT_EQ(*back, 3);
}

TEST(coroutine, passes_references_as_references) {
    coroutine<int&(int&)> c([](int& first) -> int& {
        int& second = this_coroutine::yield<int&(int&)>(first);
        return second;
    });
    int a = 1;
    int b = 2;
    EXPECT_EQ(&c.resume(a), &a);
    EXPECT_EQ(&c.resume(b), &b);
}

TEST(coroutine, moves_values_and_never_copies_them) {
    struct traveller {
        int moves = 0;
        int copies = 0;
        traveller() = default;
        traveller(const traveller& o) : moves(o.moves), copies(o.copies + 1) {}
        traveller(traveller&& o) noexcept : moves(o.moves + 1), copies(o.copies) {}
        traveller& operator=(traveller&&) = delete;
    };
    coroutine<traveller()> c([] {
        this_coroutine::yield<traveller()>(traveller());
        return traveller();
    });
    EXPECT_EQ(c.resume().copies, 0);
    EXPECT_EQ(c.resume().copies, 0);
}

TEST(coroutine, accepts_values_without_a_default_constructor) {
    struct plain {
        explicit plain(int n) : value(n) {}
        int value;
    };
    coroutine<plain(plain)> c([](plain p) { return plain(p.value + 1); });
    EXPECT_EQ(c.resume(plain(6)).value, 7);
}

[[gnu::noinline]] int yield_below(int depth) {
    if (depth == 0) {
        this_coroutine::yield();
        return 0;
    }
    return yield_below(depth - 1) + 1;
}

TEST(coroutine, yields_from_any_call_depth) {
    int depth = 0;
    coroutine<> c([&] { depth = yield_below(200); }, {.stack_bytes = 1024 * 1024});
    c.resume();
    EXPECT_EQ(depth, 0);
    c.resume();
    EXPECT_EQ(depth, 200);
}

TEST(coroutine, preserves_locals_and_captures_of_any_size) {
    struct big {
        char bytes[4000];
    };
    auto filled = [](char b) {
        big x;
        std::fill(std::begin(x.bytes), std::end(x.bytes), b);
        return x;
    };
    coroutine<int()> c([captured = filled('c'), &filled] {
        const big local = filled('l');
        this_coroutine::yield<int()>(captured.bytes[3999]);
        return static_cast<int>(local.bytes[3999]);
    });
    EXPECT_EQ(c.resume(), 'c');
    EXPECT_EQ(c.resume(), 'l');
}

TEST(coroutine, reports_its_state) {
    coroutine<> c;
    EXPECT_EQ(c.state(), coroutine_state::empty);
    EXPECT_FALSE(c);
    EXPECT_FALSE(c.done());

    coroutine_state inside = coroutine_state::empty;
    bool resumable_inside = true;
    c = coroutine<>([&] {
        inside = c.state();
        resumable_inside = static_cast<bool>(c);
        this_coroutine::yield();
    });
    EXPECT_EQ(c.state(), coroutine_state::ready);
    EXPECT_TRUE(c);
    c.resume();
    EXPECT_EQ(inside, coroutine_state::running);
    EXPECT_FALSE(resumable_inside);
    EXPECT_EQ(c.state(), coroutine_state::suspended);
    EXPECT_TRUE(c);
    EXPECT_FALSE(c.done());
    c.resume();
    EXPECT_EQ(c.state(), coroutine_state::done);
    EXPECT_FALSE(c);
    EXPECT_TRUE(c.done());
}

TEST(coroutine, is_running_while_it_resumes_another) {
    coroutine<> outer;
    coroutine_state seen = coroutine_state::empty;
    coroutine<> inner([&] { seen = outer.state(); });
    outer = coroutine<>([&] { inner.resume(); });
    outer.resume();
    EXPECT_EQ(seen, coroutine_state::running);
}

TEST(coroutine, has_a_unique_id_visible_to_its_body) {
    std::uint64_t inside = 0;
    coroutine<> a([&] { inside = this_coroutine::id(); });
    coroutine<> b([] {});
    EXPECT_NE(a.id(), 0u);
    EXPECT_NE(a.id(), b.id());
    EXPECT_FALSE(this_coroutine::exists());
    EXPECT_EQ(this_coroutine::id(), 0u);
    const std::uint64_t before = a.id();
    a.resume();
    EXPECT_EQ(inside, before);
    EXPECT_EQ(a.id(), before);
    EXPECT_EQ(coroutine<>().id(), 0u);
}

TEST(coroutine, copies_its_name) {
    std::string name = "session";
    coroutine<> c([] {}, {.name = std::string_view(name).substr(0, 4)});
    name = "gone....";
    EXPECT_EQ(c.name(), "sess");
    c.resume();
    EXPECT_EQ(c.name(), "sess");
    EXPECT_EQ(coroutine<>([] {}).name(), "");
    EXPECT_EQ(coroutine<>().name(), "");
}

TEST(coroutine, acquires_a_stack_at_first_resume_and_releases_it_when_done) {
    counting_stacks stacks;
    {
        coroutine<> never([] {}, {.stack = stacks});
    }
    EXPECT_EQ(stacks.acquired, 0);

    coroutine<> c([] { this_coroutine::yield(); }, {.stack = stacks});
    EXPECT_EQ(stacks.acquired, 0);
    c.resume();
    EXPECT_EQ(stacks.acquired, 1);
    EXPECT_EQ(stacks.released, 0);
    c.resume();
    EXPECT_EQ(stacks.released, 1);
}

TEST(coroutine, runs_on_the_acquired_stack) {
    struct recording_stacks : counting_stacks {
        weft::stack last;
        weft::stack acquire() noexcept { return last = counting_stacks::acquire(); }
    } stacks;
    const void* frame = nullptr;
    coroutine<> c([&] { frame = __builtin_frame_address(0); }, {.stack = stacks});
    c.resume();
    EXPECT_GE(frame, stacks.last.limit);
    EXPECT_LE(frame, stacks.last.top);  // riscv64's frame address is where the frame ends
}

TEST(coroutine, rethrows_exceptions_of_its_body_from_resume) {
    coroutine<int()> c([]() -> int { throw std::runtime_error("lost"); });
    try {
        c.resume();
        FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "lost");
    }
    EXPECT_EQ(c.state(), coroutine_state::done);
}

TEST(coroutine, throws_to_its_latest_resumer) {
    std::string caught;
    coroutine<> thrower([] {
        this_coroutine::yield();
        throw 1;
    });
    thrower.resume();
    coroutine<> other([&] {
        try {
            thrower.resume();
        } catch (int) {
            caught += "other";
        }
    });
    EXPECT_NO_THROW(other.resume());
    EXPECT_EQ(caught, "other");
}

TEST(coroutine, leaves_its_exception_alive_while_it_is_referenced) {
    coroutine<> c([] { throw std::string(1000, 'x'); });
    std::exception_ptr kept;
    try {
        c.resume();
    } catch (...) {
        kept = std::current_exception();
    }
    c = {};
    EXPECT_THROW(std::rethrow_exception(kept), std::string);
}

TEST(coroutine, can_be_moved_while_suspended) {
    coroutine<int()> a([] {
        this_coroutine::yield<int()>(1);
        return 2;
    });
    EXPECT_EQ(a.resume(), 1);
    coroutine<int()> b = std::move(a);
    EXPECT_EQ(a.state(), coroutine_state::empty);
    EXPECT_EQ(b.resume(), 2);
}

TEST(coroutine, survives_self_move_assignment) {
    coroutine<int()> c([] {
        this_coroutine::yield<int()>(1);
        return 2;
    });
    c.resume();
    auto& alias = c;
    c = std::move(alias);
    EXPECT_EQ(c.resume(), 2);
}

TEST(coroutine, deduces_a_void_signature_from_its_body) {
    coroutine c([] {});
    static_assert(std::same_as<decltype(c), coroutine<void()>>);
    c.resume();
    EXPECT_TRUE(c.done());
}

TEST(coroutine, try_resume_returns_the_same_values_as_resume) {
    coroutine<int(int)> c([](int n) {
        const int more = this_coroutine::yield<int(int)>(n + 1);
        return more + 1;
    });
    const result<int> first = c.try_resume(1);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(*first, 2);
    EXPECT_EQ(*c.try_resume(10), 11);
    EXPECT_EQ(c.try_resume(0).error(), std::errc::operation_not_permitted);
}

TEST(coroutine, prefetch_has_no_observable_effect) {
    coroutine<> c([] { this_coroutine::yield(); });
    c.prefetch();
    c.resume();
    c.prefetch();
    c.prefetch_stack();
    c.resume();
    coroutine<>().prefetch();
    EXPECT_TRUE(c.done());
}

}  // namespace
}  // namespace weft
