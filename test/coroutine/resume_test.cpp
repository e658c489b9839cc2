// Laws of resume as a switch: nesting, transfers, calls on top of a suspended body, and continuing
// on another thread.
#include "weft/coroutine/detail/resume.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <source_location>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/coroutine/counted.hpp"
#include "test/coroutine/steps.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

using coroutine_test::counted;
using coroutine_test::counting_stacks;
using coroutine_test::tally;

TEST(resume, nests_ten_thousand_deep) {
    constexpr int depth = WEFT_TEST_TSAN ? 1'000 : 10'000;
    coroutine_options small;
    small.stack_bytes = 16 * 1024;
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) small.stack_bytes = 64 * 1024;
    std::vector<coroutine<int()>> all(depth);
    int deepest = 0;
    for (int i = 0; i < depth; ++i) {
        all[static_cast<std::size_t>(i)] = coroutine<int()>(
            [&all, &deepest, i] {
                if (i + 1 == depth) {
                    deepest = i + 1;
                    this_coroutine::yield<int()>(0);
                    return 0;
                }
                coroutine<int()>& next = all[static_cast<std::size_t>(i) + 1];
                this_coroutine::yield<int()>(next.resume() + 1);
                return next.resume() + 1;
            },
            small);
    }
    EXPECT_EQ(all[0].resume(), depth - 1);
    EXPECT_EQ(deepest, depth);
    EXPECT_EQ(all[0].resume(), depth - 1);
    for (const auto& c : all) EXPECT_TRUE(c.done());
}

#if WEFT_TEST_STEPS && !WEFT_BACKEND_UCONTEXT && defined(__OPTIMIZE__)
// A processor predicts each `ret` by the calls that it has seen, on whatever stack.
TEST(resume, pairs_every_return_with_the_latest_call) {
    const auto body = [] {
        this_coroutine::yield();
        this_coroutine::yield();
    };
    for (const fp_environment fp : {fp_environment::own, fp_environment::shared}) {
        const auto life = [&](auto run) {
            coroutine<> c(run, {.fp = fp});
            while (c) c.resume();
        };
        const auto both = [&] {
            for (int warm = 0; warm < 3; ++warm) life(body);
            const steps begins_and_ends = count_steps([&] { life([] {}); });
            EXPECT_EQ(begins_and_ends.foreign_returns, 0u);
            const steps suspends = count_steps([&] { life(body); });
            EXPECT_EQ(suspends.foreign_returns, 0u);
            EXPECT_EQ(suspends.calls, suspends.returns);
        };
        both();
        coroutine<> outer(both, {.fp = fp});
        outer.resume();  // nested
    }
}
#endif

TEST(resume, makes_yield_return_to_the_latest_resumer) {
    std::string order;
    coroutine<> c([&] {
        order += "c1 ";
        this_coroutine::yield();
        order += "c2 ";
        this_coroutine::yield();
        order += "c3 ";
    });
    coroutine<> other([&] {
        c.resume();
        order += "other ";
        this_coroutine::yield();
    });
    c.resume();
    order += "main ";
    other.resume();
    c.resume();
    EXPECT_EQ(order, "c1 main c2 other c3 ");
}

TEST(resume, propagates_an_exception_through_a_chain_of_resumers) {
    coroutine<> inner([] { throw std::runtime_error("deep"); });
    tally t;
    coroutine<> outer([&] {
        counted local(t, 'o');
        inner.resume();
    });
    EXPECT_THROW(outer.resume(), std::runtime_error);
    EXPECT_EQ(t.deaths, "o");
    EXPECT_TRUE(inner.done());
    EXPECT_TRUE(outer.done());
}

TEST(resume, continues_a_nested_coroutine_across_yields_of_its_resumer) {
    std::vector<int> seen;
    coroutine<> leaf([&] {
        for (int i = 0; i < 3; ++i) {
            seen.push_back(i);
            this_coroutine::yield();
        }
    });
    coroutine<> branch([&] {
        for (;;) {
            leaf.resume();
            this_coroutine::yield();
        }
    });
    for (int i = 0; i < 3; ++i) branch.resume();
    EXPECT_EQ(seen, (std::vector{0, 1, 2}));
}

TEST(resume_with, passes_the_functions_result_to_the_body) {
    coroutine<int(int)> c([](int first) {
        for (;;) first = this_coroutine::yield<int(int)>(first * 2);
        return 0;
    });
    EXPECT_EQ(c.resume(1), 2);
    EXPECT_EQ(c.resume_with([] { return 21; }), 42);
    EXPECT_EQ(c.resume(3), 6);
}

TEST(resume_with, runs_the_function_on_the_coroutines_stack) {
    std::uint64_t id = 0;
    bool below = false;
    const char* of_body = nullptr;
    coroutine<> c([&] {
        char local = 0;
        of_body = &local;
        this_coroutine::yield();
    });
    c.resume();
    c.resume_with([&] {
        char local = 0;
        below = &local < of_body && of_body - &local < 16 * 1024;
        id = this_coroutine::id();
    });
    EXPECT_EQ(id, c.id());
    EXPECT_TRUE(below || WEFT_TEST_ASAN);  // ASan may keep locals elsewhere
}

TEST(resume_with, makes_the_yield_throw_what_the_function_throws) {
    tally t;
    coroutine<int()> c([&] {
        try {
            counted local(t, 'l');
            this_coroutine::yield<int()>(1);
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "thrown in");
            return 2;
        }
        return 3;
    });
    EXPECT_EQ(c.resume(), 1);
    EXPECT_EQ(c.resume_with([] { throw std::runtime_error("thrown in"); }), 2);
    EXPECT_EQ(t.deaths, "l");
}

TEST(resume_with, rethrows_what_the_body_does_not_catch) {
    coroutine<> c([] { this_coroutine::yield(); });
    c.resume();
    EXPECT_THROW(c.resume_with([] { throw 1; }), int);
    EXPECT_TRUE(c.done());
}

TEST(resume_with, runs_before_the_body_of_an_unstarted_coroutine) {
    std::string order;
    coroutine<> c([&] { order += "body"; });
    c.resume_with([&] { order += "before "; });
    EXPECT_EQ(order, "before body");
    coroutine<int(int)> d([](int n) { return n + 1; });
    EXPECT_EQ(d.resume_with([] { return 6; }), 7);
}

// Where it throws, and where it is killed.
TEST(resume_with, destroys_a_body_that_never_runs) {
    tally t;
    coroutine<> thrown([o = counted(t, 'o')] { FAIL() << "it does not run"; });
    EXPECT_THROW(thrown.resume_with([] { throw 1; }), int);
    EXPECT_TRUE(thrown.done());
    EXPECT_EQ(t.alive, 0);
    coroutine<> killed([o = counted(t, 'p')] { FAIL() << "it does not run"; });
    killed.resume_with([] { this_coroutine::yield(); });
    EXPECT_TRUE(killed.kill());
    EXPECT_EQ(t.alive, 0);
    EXPECT_EQ(t.deaths, "op");
}

TEST(resume_with, lets_the_function_yield) {
    int turns = 0;
    coroutine<> c([&] {
        this_coroutine::yield();
        ++turns;
    });
    c.resume();
    c.resume_with([] { this_coroutine::yield(); });
    EXPECT_EQ(turns, 0);
    c.resume();
    EXPECT_EQ(turns, 1);
}

TEST(switch_to, transfers_the_resumer) {
    std::string order;
    coroutine<> a;
    coroutine<> b([&] {
        order += "b1 ";
        this_coroutine::yield();  // to main, which resumed a
        order += "b2 ";
    });
    a = coroutine<>([&] {
        order += "a1 ";
        b.switch_to();
        order += "a2 ";
    });
    a.resume();
    order += "main ";
    EXPECT_EQ(a.state(), coroutine_state::suspended);
    EXPECT_EQ(b.state(), coroutine_state::suspended);
    b.resume();
    a.resume();
    EXPECT_EQ(order, "a1 b1 main b2 a2 ");
    EXPECT_TRUE(a.done());
    EXPECT_TRUE(b.done());
}

TEST(switch_to, alternates_between_two_coroutines) {
    int turns = 0;
    coroutine<> a;
    coroutine<> b([&] {
        for (;;) {
            ++turns;
            a.switch_to();
        }
    });
    a = coroutine<>([&] {
        for (int i = 0; i < 100; ++i) b.switch_to();
    });
    a.resume();
    EXPECT_EQ(turns, 100);
    EXPECT_TRUE(a.done());
    EXPECT_EQ(b.state(), coroutine_state::suspended);
}

TEST(switch_to, returns_to_the_resumer_when_the_target_finishes) {
    counting_stacks stacks;
    coroutine<> b([] {}, {.stack = stacks});
    coroutine<> a([&] { b.switch_to(); }, {.stack = stacks});
    coroutine<> outer([&] {
        a.resume();
        EXPECT_TRUE(b.done());
        EXPECT_EQ(a.state(), coroutine_state::suspended);
        a.resume();
    });
    outer.resume();
    EXPECT_TRUE(outer.done());
    EXPECT_EQ(stacks.released, 2);
}

TEST(switch_to, delivers_exceptions_of_the_target_to_the_resumer) {
    coroutine<> b([] { throw 1; });
    bool caught_in_a = false;
    coroutine<> a([&] {
        try {
            b.switch_to();
        } catch (int) {
            caught_in_a = true;
        }
    });
    EXPECT_THROW(a.resume(), int);
    EXPECT_FALSE(caught_in_a);
    EXPECT_EQ(a.state(), coroutine_state::suspended);
    a.resume();
    EXPECT_TRUE(a.done());
}

TEST(switch_to, leaves_a_coroutine_that_can_be_killed) {
    tally t;
    coroutine<> b([] { this_coroutine::yield(); });
    coroutine<> a([&] {
        counted local(t, 'a');
        b.switch_to();
    });
    a.resume();
    EXPECT_TRUE(a.kill());
    EXPECT_EQ(t.deaths, "a");
}

TEST(switch_to, keeps_a_handled_exception_with_its_coroutine) {
    counting_stacks none;
    none.budget = 0;
    coroutine<> b([] { EXPECT_EQ(std::current_exception(), nullptr); });
    coroutine<> without_stack([] {}, {.stack = none});
    coroutine<> a([&] {
        try {
            throw 1;
        } catch (int) {
            b.switch_to();
            EXPECT_NE(std::current_exception(), nullptr);
            EXPECT_THROW(without_stack.switch_to(), std::bad_alloc);
            EXPECT_NE(std::current_exception(), nullptr);
            EXPECT_THROW(throw, int);
        }
    });
    a.resume();
    a.resume();
    EXPECT_TRUE(a.done());
}

// A coroutine without a handle.
class bare_one {
public:
    template <class Body>
    explicit bare_one(Body body, fp_environment fp = fp_environment::own)
        : c_(detail::make<void()>(body, {.fp = fp})) {}
    bare_one(const bare_one&) = delete;
    bare_one& operator=(const bare_one&) = delete;
    ~bare_one() { detail::destroy(c_); }
    detail::control& operator*() const noexcept { return *c_; }
    coroutine_state state() const noexcept { return c_->word.state(); }
    detail::control* resume() {
        return detail::resume(c_, nullptr, std::source_location::current());
    }

private:
    detail::control* c_;
};

TEST(continue_instead, comes_back_to_the_resumer_as_the_one_that_was_continued) {
    std::string seen;
    bare_one b([&] {
        seen += 'b';
        this_coroutine::yield();
        seen += 'B';
        this_coroutine::yield();
        seen += '!';
    });
    bare_one a([&] {
        seen += 'a';
        ASSERT_TRUE(detail::may_continue_instead(*b));
        detail::continue_instead(*b);
        seen += 'A';
    });
    EXPECT_EQ(b.resume(), &*b);
    EXPECT_EQ(a.resume(), &*b);
    EXPECT_EQ(seen, "baB");
    EXPECT_EQ(a.state(), coroutine_state::suspended);
    EXPECT_EQ(b.state(), coroutine_state::suspended);
    EXPECT_EQ(a.resume(), &*a);
    EXPECT_EQ(a.state(), coroutine_state::done);
    EXPECT_EQ(b.resume(), &*b);
    EXPECT_EQ(b.state(), coroutine_state::done);
    EXPECT_EQ(seen, "baBA!");
}

TEST(continue_instead, leaves_the_end_and_the_error_to_the_one_that_was_continued) {
    bare_one b([] {
        this_coroutine::yield();
        throw std::runtime_error("b");
    });
    bare_one a([&] {
        this_coroutine::yield();
        detail::continue_instead(*b);
    });
    b.resume();
    a.resume();
    EXPECT_THROW(a.resume(), std::runtime_error);
    EXPECT_EQ(b.state(), coroutine_state::done);
    EXPECT_EQ(a.state(), coroutine_state::suspended);
    a.resume();
    EXPECT_EQ(a.state(), coroutine_state::done);
}

TEST(continue_instead, can_be_ended_by_a_kill) {
    tally t;
    bare_one b([] {
        this_coroutine::yield();
        this_coroutine::yield();
    });
    bare_one a([&] {
        counted local(t, 'a');
        detail::continue_instead(*b);
    });
    b.resume();
    a.resume();
    EXPECT_TRUE(detail::kill(&*a, std::source_location::current()));
    EXPECT_EQ(t.deaths, "a");
    EXPECT_EQ(a.state(), coroutine_state::killed);
}

TEST(continue_instead, keeps_the_floating_point_environment_of_each) {
    const auto before = std::fegetround();
    bare_one b([] {
        std::fesetround(FE_UPWARD);
        this_coroutine::yield();
        EXPECT_EQ(std::fegetround(), FE_UPWARD);
        this_coroutine::yield();
    });
    bare_one a([&] {
        std::fesetround(FE_DOWNWARD);
        detail::continue_instead(*b);
        EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
    });
    b.resume();
    a.resume();
    EXPECT_EQ(std::fegetround(), before);
    a.resume();
    EXPECT_EQ(std::fegetround(), before);
}

TEST(continue_instead, is_refused_where_the_resumer_would_not_know_it_again) {
    const auto yields = [] {
        for (;;) this_coroutine::yield();
    };
    bare_one own(yields);
    bare_one shared(yields, fp_environment::shared);
    bare_one fresh(yields);
    own.resume();
    shared.resume();
    bare_one nested([&] { EXPECT_FALSE(detail::may_continue_instead(*own)) << "resumed by one"; });
    bare_one a([&] {
        EXPECT_TRUE(detail::may_continue_instead(*own));
        EXPECT_FALSE(detail::may_continue_instead(*shared)) << "of another kind";
        EXPECT_FALSE(detail::may_continue_instead(*fresh)) << "not begun";
        EXPECT_FALSE(detail::may_continue_instead(*detail::current())) << "it runs";
        nested.resume();
        try {
            throw 1;
        } catch (int) {
            EXPECT_FALSE(detail::may_continue_instead(*own)) << "an exception is in flight";
        }
    });
    a.resume();
    bare_one of_shared(
        [&] {
            EXPECT_EQ(detail::may_continue_instead(*shared), !WEFT_DEBUG);
            EXPECT_FALSE(detail::may_continue_instead(*own));
        },
        fp_environment::shared);
    of_shared.resume();
}

TEST(switch_to_death, to_a_coroutine_of_another_signature) {
    coroutine<> of_no_signature([] {}, {.name = "of_no_signature"});
    coroutine<int()> c([&] {
        of_no_signature.switch_to();
        return 1;
    });
    EXPECT_DEATH(c.resume(), "weft: switch_to a coroutine of another signature.*of_no_signature");
}

}  // namespace
}  // namespace weft
