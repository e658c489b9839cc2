// Laws of the kill: everything on a suspended stack is destroyed, innermost first, and an obstacle
// is reported before anything is destroyed.
#include "weft/coroutine/detail/kill.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "test/coroutine/counted.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

using coroutine_test::at_exit;
using coroutine_test::counted;
using coroutine_test::tally;

[[gnu::noinline]] void deepest(tally& t) {
    counted x(t, 'x');
    counted y(t, 'y');
    this_coroutine::yield();
    counted never(t, '!');
}
[[gnu::noinline]] void middle(tally& t) {
    counted m(t, 'm');
    deepest(t);
    counted never(t, '!');
}

TEST(kill, destroys_three_frames_innermost_first) {
    tally t;
    coroutine<> c([&t, captured = counted(t, 'c')] {
        counted local(t, 'b');
        middle(t);
    });
    c.resume();
    EXPECT_EQ(t.alive, 5);
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(t.deaths, "yxmbc");
    EXPECT_EQ(t.alive, 0);
    EXPECT_EQ(c.state(), coroutine_state::killed);
}

TEST(kill, returns_true_once) {
    coroutine<> c([] { this_coroutine::yield(); });
    c.resume();
    EXPECT_TRUE(c.kill());
    EXPECT_FALSE(c.kill());
    coroutine<> done([] {});
    done.resume();
    EXPECT_FALSE(done.kill());
    EXPECT_EQ(done.state(), coroutine_state::done);
    coroutine<> empty;
    EXPECT_FALSE(empty.kill());
}

TEST(kill, of_an_unstarted_coroutine_does_not_run_its_body) {
    bool ran = false;
    coroutine<> c([&] { ran = true; });
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(c.state(), coroutine_state::killed);
    EXPECT_FALSE(ran);
}

TEST(kill, passes_through_a_rethrowing_catch_all) {
    tally t;
    coroutine<> c([&] {
        counted outer(t, 'o');
        try {
            counted inner(t, 'i');
            this_coroutine::yield();
        } catch (...) {
            t.deaths += 'c';
            throw;
        }
        t.deaths += '!';
    });
    c.resume();
    c.kill();
    EXPECT_EQ(t.deaths, "ico");
}

TEST(kill, passes_handlers_of_other_types) {
    bool caught = false;
    coroutine<> c([&] {
        try {
            this_coroutine::yield();
        } catch (const std::exception&) {
            caught = true;
        }
    });
    c.resume();
    c.kill();
    EXPECT_FALSE(caught);
    EXPECT_EQ(c.state(), coroutine_state::killed);
}

// A body that swallows the unwind continues until its next yield, and is unwound there.
TEST(kill, unwinds_a_swallowing_body_at_its_next_yield) {
    std::string order;
    tally t;
    coroutine<> c([&] {
        counted outer(t, 'o');
        try {
            counted inner(t, 'i');
            this_coroutine::yield();
        } catch (...) {
            order += "swallowed ";
        }
        order += "went on ";
        counted later(t, 'l');
        this_coroutine::yield();
        order += "never";
    });
    c.resume();
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(order, "swallowed went on ");
    EXPECT_EQ(t.deaths, "ilo");
    EXPECT_EQ(c.state(), coroutine_state::killed);
}

void yield_and_swallow() {
    try {
        this_coroutine::yield();
    } catch (...) {
    }
}

TEST(kill, swallowed_by_a_body_that_returns_leaves_it_done) {
    coroutine<> c([] { yield_and_swallow(); });
    c.resume();
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(c.state(), coroutine_state::done);
}

TEST(kill, rethrows_what_a_swallowing_body_throws) {
    coroutine<> c([] {
        yield_and_swallow();
        throw 7;
    });
    c.resume();
    EXPECT_THROW(c.kill(), int);
    EXPECT_EQ(c.state(), coroutine_state::done);
}

TEST(kill, lets_cleanups_throw_and_catch_exceptions) {
    tally t;
    coroutine<> c([&] {
        at_exit cleanup([&] {
            try {
                counted inner(t, 'i');
                throw 1;
            } catch (int) {
                t.deaths += 'c';
            }
        });
        counted last(t, 'l');
        this_coroutine::yield();
    });
    c.resume();
    c.kill();
    EXPECT_EQ(t.deaths, "lic");
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

// One unwind, no matter what the body would do next.
TEST(kill, of_an_endless_body_returns_promptly) {
    coroutine<> c([] {
        while (true) this_coroutine::yield();
    });
    c.resume();
    const auto start = std::chrono::steady_clock::now();
    c.kill();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
    EXPECT_EQ(c.state(), coroutine_state::killed);
}

TEST(kill, inside_a_handler_releases_the_handled_exception) {
    tally t;
    coroutine<> c([&] {
        counted outer(t, 'o');
        try {
            throw counted(t, 'e');
        } catch (const counted&) {
            counted inner(t, 'i');
            this_coroutine::yield();
        }
    });
    c.resume();
    EXPECT_EQ(t.alive, 2 + 1);
    c.kill();
    EXPECT_EQ(t.deaths, "ieo");
    EXPECT_EQ(t.alive, 0);
    EXPECT_EQ(std::current_exception(), nullptr);
}

// What the runtime borrowed, so that handlers may end as they always do, is taken back.
#if !WEFT_TEST_ASAN && !WEFT_TEST_TSAN && defined(__GLIBC__)  // which counts what malloc gave
TEST(kill, inside_a_handler_leaks_no_memory) {
    const auto kill_one = [] {
        coroutine<> c([] {
            try {
                throw 1;
            } catch (int) {
                this_coroutine::yield();
            }
        });
        c.resume();
        c.kill();
    };
    for (int n = 0; n < 100; ++n) kill_one();
    const std::size_t before = mallinfo2().uordblks;
    for (int n = 0; n < 1000; ++n) kill_one();
    EXPECT_LE(mallinfo2().uordblks, before + 16 * 1024);
}
#endif

[[gnu::noinline]] int takes_nine(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
    this_coroutine::yield();
    return a + b + c + d + e + f + g + h + i;
}

struct weighed {
    int* sum;
    int weight;
    [[gnu::noinline]] ~weighed() { *sum = *sum * 10 + weight; }
};

[[gnu::noinline]] int pushes_three(int* sum, int n) {
    const weighed one{sum, n};
    return takes_nine(1, 2, 3, 4, 5, 6, n, n + 1, n + 2) + one.weight;
}

// A landing pad is entered as if the call had returned and its arguments had been popped. Where the
// caller has a frame pointer it does not matter; Clang's, optimised, has none.
TEST(kill, unwinds_a_caller_that_pushed_arguments) {
    int sum = 0;
    coroutine<> c([&] { pushes_three(&sum, 3); });
    c.resume();
    c.kill();
    EXPECT_EQ(sum, 3);
}

TEST(kill, while_the_killer_unwinds_keeps_its_exception) {
    tally t;
    std::string caught;
    try {
        coroutine<> c([&] {
            counted local(t, 'l');
            this_coroutine::yield();
        });
        c.resume();
        throw std::string("killer's");
    } catch (const std::string& e) {
        caught = e;
    }
    EXPECT_EQ(caught, "killer's");
    EXPECT_EQ(t.deaths, "l");
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(kill, in_a_handler_keeps_the_killers_exception_current) {
    coroutine<> c([] { this_coroutine::yield(); });
    c.resume();
    try {
        throw 5;
    } catch (...) {
        c.kill();
        EXPECT_THROW(throw, int);
    }
}

TEST(kill, nests_in_destructors_run_by_a_kill) {
    constexpr int depth = 50;
    tally t;
    coroutine<> outermost;
    for (int i = 0; i < depth; ++i) {
        coroutine<> next([&t, inner = std::move(outermost)] {
            counted local(t, 'l');
            this_coroutine::yield();
        });
        next.resume();
        outermost = std::move(next);
    }
    outermost.kill();
    EXPECT_EQ(t.deaths, std::string(depth, 'l'));
    EXPECT_EQ(t.alive, 0);
}

TEST(kill, lets_destructors_resume_other_coroutines) {
    std::string order;
    coroutine<> other([&] {
        order += "other ";
        this_coroutine::yield();
        order += "again";
    });
    coroutine<> c([&] {
        at_exit second([&] { other.resume(); });
        at_exit first([&] { other.resume(); });
        this_coroutine::yield();
    });
    c.resume();
    c.kill();
    EXPECT_EQ(order, "other again");
    EXPECT_TRUE(other.done());
}

TEST(kill, by_a_coroutine_returns_to_that_coroutine) {
    tally t;
    coroutine<> victim([&] {
        counted local(t, 'l');
        this_coroutine::yield();
    });
    victim.resume();
    coroutine<int()> killer([&] {
        victim.kill();
        this_coroutine::yield<int()>(1);
        return 2;
    });
    EXPECT_EQ(killer.resume(), 1);
    EXPECT_EQ(t.deaths, "l");
    EXPECT_EQ(killer.resume(), 2);
}

TEST(kill_death, of_a_body_that_swallows_every_unwind_aborts) {
    auto die = [] {
        coroutine<> c(
            [] {
                for (;;) {
                    try {
                        this_coroutine::yield();
                    } catch (...) {
                    }
                }
            },
            {.name = "stubborn"});
        c.resume();
        c.kill();
    };
    EXPECT_DEATH(die(), "weft: kill of a coroutine whose body swallows every unwind.*stubborn");
}

TEST(kill_death, yield_in_an_unwinding_destructor_aborts) {
    auto die = [] {
        coroutine<> c(
            [] {
                at_exit bad([] { this_coroutine::yield(); });
                this_coroutine::yield();
            },
            {.name = "lingering"});
        c.resume();
        c.kill();
    };
    EXPECT_DEATH(die(), "weft: yield in a destructor that runs because.*killed.*lingering");
}

TEST(kill_death, yield_in_a_destructor_after_a_swallowed_kill_aborts) {
    auto die = [] {
        coroutine<> c(
            [] {
                yield_and_swallow();
                at_exit bad([] { this_coroutine::yield(); });
                this_coroutine::yield();
            },
            {.name = "lingering"});
        c.resume();
        c.kill();
    };
    EXPECT_DEATH(die(), "weft: yield in a destructor that runs because.*killed.*lingering");
}

[[gnu::noinline]] void fenced(tally& t) noexcept {
    counted inner(t, 'i');
    this_coroutine::yield();
    t.deaths += '!';
}

// The refusal is the first that is heard.
TEST(kill_death, through_a_noexcept_function_aborts_before_any_destructor) {
    struct shouting {
        ~shouting() { std::fputs("destroyed\n", stderr); }
    };
    auto die = [] {
        tally t;
        coroutine<> c(
            [&] {
                const shouting outer;
                fenced(t);
            },
            {.name = "fenced"});
        c.resume();
        c.kill();
    };
    EXPECT_DEATH(die(),
                 "^weft: kill of a coroutine is refused: .*coroutine .+ \"fenced\" "
                 "\\(.*kill_test.cpp:.+\\)\n");
}

TEST(kill_death, on_destruction_terminates_when_a_swallowing_body_throws) {
    auto die = [] {
        coroutine<> c([] {
            try {
                this_coroutine::yield();
            } catch (...) {
            }
            throw 1;
        });
        c.resume();
    };
    EXPECT_DEATH(die(), "terminate");
}

}  // namespace
}  // namespace weft
