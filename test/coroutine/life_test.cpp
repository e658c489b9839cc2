// Laws of a coroutine's lifetime: what its body captured, its locals and its private data are
// destroyed exactly once, in whatever state it is destroyed, killed or restarted.
#include "weft/coroutine/detail/life.hpp"

#include <gtest/gtest.h>

#include <new>
#include <tuple>
#include <utility>

#include "test/coroutine/counted.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/stack/growable_stack.hpp"
#include "weft/stack/mapped_stack.hpp"

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft {
namespace {

using coroutine_test::counted;
using coroutine_test::counting_stacks;
using coroutine_test::tally;

// Every state crossed with every end. 'c' is captured by the body, 'l' is its local.
enum class from { unstarted, suspended, finished, threw, killed };
enum class by { destruction, kill, reset, assignment };

class coroutine_life : public ::testing::TestWithParam<std::tuple<from, by>> {};

TEST_P(coroutine_life, destroys_captures_and_locals_exactly_once) {
    const auto [state, end] = GetParam();
    tally t;
    counting_stacks stacks;
    {
        coroutine<> c(
            [&t, captured = counted(t, 'c'), throws = state == from::threw] {
                counted local(t, 'l');
                this_coroutine::yield();
                if (throws) throw 1;
            },
            {.stack = stacks});
        EXPECT_EQ(t.alive, 1);
        if (state != from::unstarted) c.resume();
        if (state == from::finished) c.resume();
        if (state == from::threw) {
            EXPECT_THROW(c.resume(), int);
        }
        if (state == from::killed) c.kill();
        const bool over = state >= from::finished;
        EXPECT_EQ(t.deaths, over ? "lc" : "");
        switch (end) {
            case by::destruction:
                break;
            case by::kill:
                EXPECT_EQ(c.kill(), !over);
                break;
            case by::reset:
                c.reset([] {});
                break;
            case by::assignment:
                c = coroutine<>();
                break;
        }
    }
    EXPECT_EQ(t.deaths, state == from::unstarted ? "c" : "lc");
    EXPECT_EQ(t.alive, 0);
    EXPECT_EQ(stacks.acquired, state == from::unstarted ? 0 : 1);
    EXPECT_EQ(stacks.released, stacks.acquired);
}

INSTANTIATE_TEST_SUITE_P(
    matrix, coroutine_life,
    ::testing::Combine(::testing::Values(from::unstarted, from::suspended, from::finished,
                                         from::threw, from::killed),
                       ::testing::Values(by::destruction, by::kill, by::reset, by::assignment)));

TEST(coroutine_reset, restarts_from_every_state_and_keeps_id_and_name) {
    coroutine<int()> c([] { return 1; }, {.name = "again"});
    const std::uint64_t id = c.id();
    auto two = [] {
        this_coroutine::yield<int()>(2);
        return 3;
    };
    c.reset(two);  // unstarted
    EXPECT_EQ(c.resume(), 2);
    c.reset(two);  // suspended
    EXPECT_EQ(c.resume(), 2);
    EXPECT_EQ(c.resume(), 3);
    c.reset(two);  // finished
    EXPECT_EQ(c.resume(), 2);
    c.kill();
    c.reset([]() -> int { throw 1; });  // killed
    EXPECT_EQ(c.state(), coroutine_state::ready);
    EXPECT_THROW(c.resume(), int);
    c.reset(two);  // threw
    EXPECT_EQ(c.resume(), 2);
    EXPECT_EQ(c.id(), id);
    EXPECT_EQ(c.name(), "again");
}

TEST(coroutine_reset, accepts_a_body_of_any_size_and_keeps_its_allocator) {
    counting_stacks stacks;
    coroutine<> c([] {}, {.stack = stacks});
    char big[500] = {};
    char seen = 0;
    big[499] = 'x';
    c.reset([big, &seen] { seen = big[499]; });
    c.resume();
    EXPECT_EQ(seen, 'x');
    EXPECT_EQ(stacks.acquired, 1);
}

TEST(coroutine_lifetime, move_assignment_kills_the_old_body_first) {
    tally t;
    coroutine<> c([&] {
        counted local(t, 'l');
        this_coroutine::yield();
    });
    c.resume();
    c = coroutine<>([&] { EXPECT_EQ(t.deaths, "l"); });
    EXPECT_EQ(t.deaths, "l");
    c.resume();
}

TEST(coroutine_lifetime, destroys_values_that_were_not_taken) {
    tally t;
    {
        coroutine<counted(counted)> c([&t](counted first) {
            this_coroutine::yield<counted(counted)>(std::move(first));
            return counted(t, 'r');
        });
        c.resume_with([&] { return counted(t, 'a'); });
        EXPECT_EQ(t.deaths, "a");
        c.kill();
    }
    EXPECT_EQ(t.alive, 0);
}

TEST(coroutine_lifetime, throws_bad_alloc_without_a_stack_and_can_be_retried) {
    tally t;
    counting_stacks stacks;
    stacks.budget = 0;
    coroutine<> c([captured = counted(t, 'c')] {}, {.stack = stacks});
    EXPECT_THROW(c.resume(), std::bad_alloc);
    EXPECT_EQ(stacks.refused, 1) << "asked once";
    EXPECT_THROW(static_cast<void>(c.try_resume()), std::bad_alloc);
    EXPECT_EQ(c.state(), coroutine_state::ready);
    coroutine<> outer([&] { EXPECT_THROW(c.resume(), std::bad_alloc); });
    outer.resume();
    EXPECT_TRUE(outer.done());
    EXPECT_EQ(c.state(), coroutine_state::ready);
    EXPECT_EQ(stacks.refused, 3);
    EXPECT_EQ(t.deaths, "");
    stacks.budget = 1;
    c.resume();
    EXPECT_EQ(t.deaths, "c");
    EXPECT_TRUE(c.done());
}

TEST(coroutine_lifetime, rethrows_and_keeps_nothing_when_copying_the_body_throws) {
    struct cannot_be_copied {
        cannot_be_copied() = default;
        cannot_be_copied(const cannot_be_copied&) { throw 1; }
        void operator()() const {}
    };
    const cannot_be_copied body;
    EXPECT_THROW(coroutine<> refused{body}, int);
    tally t;
    coroutine<> c([captured = counted(t, 'c')] {});
    EXPECT_THROW(c.reset(body), int);
    EXPECT_EQ(t.deaths, "c");
    EXPECT_EQ(c.state(), coroutine_state::killed);
}

#if WEFT_ASAN
// The stack's owner may use the memory for anything, and the next coroutine has its frames
// elsewhere in it.
TEST(coroutine_lifetime, releases_its_stack_without_asan_poisoning) {
    struct looks_at_it {
        mapped_stack stacks{64 * 1024};
        int poisoned = 0;
        int released = 0;

        stack acquire() noexcept { return stacks.acquire(); }
        void release(stack s) noexcept {
            ++released;
            poisoned += __asan_region_is_poisoned(s.limit, s.bytes()) != nullptr;
            stacks.release(s);
        }
        std::size_t stack_bytes() const noexcept { return stacks.stack_bytes(); }
    } stacks;
    struct large {
        char bytes[200] = {};
        void use() { asm volatile("" ::"r"(this) : "memory"); }
    };
    coroutine<> returns([o = large()]() mutable { o.use(); }, {.stack = stacks});
    returns.resume();
    coroutine<> throws([o = large()]() mutable { o.use(), throw 1; }, {.stack = stacks});
    EXPECT_THROW(throws.resume(), int);
    coroutine<> killed(
        [o = large()]() mutable {
            this_coroutine::yield();
            o.use();
        },
        {.stack = stacks});
    killed.resume();
    killed.kill();
    EXPECT_EQ(stacks.released, 3);
    EXPECT_EQ(stacks.poisoned, 0);
}
#endif

TEST(private_data, is_found_by_type_inside_and_outside) {
    coroutine<> c([] { ++*this_coroutine::private_data<int>(); });
    EXPECT_EQ(c.private_data<int>(), nullptr);
    c.emplace_private<int>(7);
    EXPECT_EQ(c.private_data<long>(), nullptr);
    EXPECT_EQ(this_coroutine::private_data<int>(), nullptr);
    c.resume();
    EXPECT_EQ(*c.private_data<int>(), 8);
    EXPECT_EQ(coroutine<>().private_data<int>(), nullptr);
}

TEST(private_data, is_destroyed_once_after_the_body) {
    tally t;
    {
        coroutine<> c([&] {
            counted local(t, 'l');
            this_coroutine::yield();
        });
        c.emplace_private<counted>(t, 'x');
        c.emplace_private<counted>(t, 'p');
        EXPECT_EQ(t.deaths, "x");
        c.resume();
        c.kill();
        EXPECT_EQ(t.deaths, "xl");
    }
    EXPECT_EQ(t.deaths, "xlp");
    EXPECT_EQ(t.alive, 0);
}

TEST(private_data, is_destroyed_by_reset) {
    tally t;
    coroutine<> c([] {});
    c.emplace_private<counted>(t, 'p');
    c.reset([] {});
    EXPECT_EQ(t.deaths, "p");
    EXPECT_EQ(c.private_data<counted>(), nullptr);
}

[[gnu::noinline]] void use_stack(std::size_t bytes) {
    auto* p = static_cast<volatile char*>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; i += 256) p[i] = 1;
    p[0] = 1;
}

// The frames above and below the alloca are not part of `depth`: under a page, but for what
// the dynamic linker and sanitizers put there at first calls, which the dry run takes.
TEST(coroutine_stack, reports_its_high_water_mark_to_one_page) {
    const std::size_t page = detail::page_bytes();
    auto measure = [](std::size_t depth) {
        mapped_stack stacks(256 * 1024);
        coroutine<> c(
            [depth] {
                use_stack(depth);
                this_coroutine::yield();
            },
            {.stack = stacks});
        EXPECT_EQ(c.stack_high_water_bytes(), 0u);
        c.resume();
        return c.stack_high_water_bytes();
    };
    measure(1);
    const std::size_t base = measure(1);
    for (const std::size_t pages : {1u, 5u, 20u, 40u}) {
        const std::size_t bytes = measure(pages * page);
        EXPECT_GE(bytes, pages * page);
        EXPECT_LE(bytes, base + (pages + 1) * page);
    }
}

TEST(coroutine_stack, trim_releases_memory_below_a_suspended_coroutine) {
    growable_stack stacks(1024 * 1024);
    const char* kept = nullptr;
    coroutine<> c(
        [&] {
            const char local[] = "kept";
            kept = local;
            use_stack(512 * 1024);
            this_coroutine::yield();
            EXPECT_STREQ(local, "kept");
            use_stack(512 * 1024);
        },
        {.stack = stacks});
    EXPECT_EQ(c.trim_stack(), 0u);
    c.resume();
    EXPECT_GE(c.stack_high_water_bytes(), 512u * 1024);
    EXPECT_GE(c.trim_stack(), 256u * 1024);
    EXPECT_LT(c.stack_high_water_bytes(), 64u * 1024);
    EXPECT_STREQ(kept, "kept");
    c.resume();
    EXPECT_EQ(c.trim_stack(), 0u);
}

}  // namespace
}  // namespace weft
