// Laws of shared stacks: what is on one when a coroutine leaves is there when it comes back;
// a break of the rules that this takes is reported.
#include "weft/coroutine/shared_stack_group.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/coroutine/counted.hpp"
#include "test/support/allocations.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

using coroutine_test::counted;
using coroutine_test::tally;

TEST(shared_stack_group, alternates_coroutines_on_one_stack) {
    shared_stack_group group;
    std::string order;
    std::vector<coroutine<>> all;
    for (char name : {'a', 'b', 'c'}) {
        all.emplace_back(
            [&order, name] {
                const std::string local(30, name);
                for (int i = 0; i < 3; ++i) {
                    order += local[static_cast<std::size_t>(i)];
                    this_coroutine::yield();
                }
            },
            coroutine_options{.shared = &group});
    }
    for (int i = 0; i < 4; ++i)
        for (auto& c : all) c.resume();
    EXPECT_EQ(order, "abcabcabc");
    for (auto& c : all) EXPECT_TRUE(c.done());
}

TEST(shared_stack_group, passes_values_both_ways) {
    shared_stack_group group;
    auto doubling = [](std::string s) {
        for (;;) s = this_coroutine::yield<std::string(std::string)>(s + s);
        return s;
    };
    coroutine<std::string(std::string)> a(doubling, {.shared = &group});
    coroutine<std::string(std::string)> b(doubling, {.shared = &group});
    for (int i = 0; i < 5; ++i) {
        const std::string text(static_cast<std::size_t>(10 * i + 1), 'x');
        EXPECT_EQ(a.resume(text), text + text);
        EXPECT_EQ(b.resume(text), text + text);
    }
}

// Fills a frame of `bytes` with what only this frame would hold, goes deeper, and checks again
// after each return: what was copied wrongly is found where it was lost.
[[gnu::noinline]] void descend(unsigned seed, int depth, bool& intact) {
    const std::size_t bytes = 16 + seed % 700;
    auto* p = static_cast<volatile unsigned char*>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; ++i) p[i] = static_cast<unsigned char>(seed + i);
    if (depth > 0) descend(seed * 1664525u + 1013904223u, depth - 1, intact);
    this_coroutine::yield();
    for (std::size_t i = 0; i < bytes; ++i)
        if (p[i] != static_cast<unsigned char>(seed + i)) intact = false;
}

struct member {
    std::unique_ptr<bool> intact = std::make_unique<bool>(true);
    coroutine<> c;
    int left = 0;  // yields to come
};

TEST(shared_stack_group, preserves_contents_through_random_switches_and_kills) {
    std::mt19937 random(7);
    auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    shared_stack_group one(1, 64 * 1024);
    shared_stack_group three(3, 128 * 1024);
    {
        std::vector<member> all(40);
        auto begin = [&](member& m) {
            const unsigned seed = below(1'000'000);
            const int depth = static_cast<int>(below(20));
            m.left = depth + 1;
            m.c = coroutine<>([seed, depth, ok = m.intact.get()] { descend(seed, depth, *ok); },
                              {.shared = below(2) == 0 ? &one : &three});
        };
        for (member& m : all) begin(m);
        const int rounds = WEFT_TEST_ASAN || WEFT_TEST_TSAN ? 5'000 : 30'000;
        for (int i = 0; i < rounds; ++i) {
            member& m = all[below(40)];
            if (below(50) == 0) {
                m.c.kill();
                begin(m);
                continue;
            }
            m.c.resume();
            ASSERT_EQ(m.c.done(), m.left == 0);
            if (m.left-- == 0) begin(m);
            ASSERT_TRUE(*m.intact);
        }
    }
    EXPECT_EQ(one.stats().coroutine_count + three.stats().coroutine_count, 0u);
    EXPECT_EQ(one.stats().saved_bytes + three.stats().saved_bytes, 0u);
}

TEST(shared_stack_group, lets_a_coroutine_resume_another_on_the_same_stack) {
    shared_stack_group group;
    std::string order;
    coroutine<> inner(
        [&] {
            const std::string local(100, 'i');
            order += "i1 ";
            this_coroutine::yield();
            order += local == std::string(100, 'i') ? "i2 " : "broken ";
        },
        {.shared = &group});
    coroutine<> outer(
        [&] {
            const std::string local(100, 'o');
            inner.resume();
            order += "o1 ";
            this_coroutine::yield();
            inner.resume();
            order += local == std::string(100, 'o') ? "o2 " : "broken ";
        },
        {.shared = &group});
    outer.resume();
    order += "main ";
    outer.resume();
    EXPECT_EQ(order, "i1 o1 main i2 o2 ");
    EXPECT_TRUE(inner.done());
    EXPECT_TRUE(outer.done());
}

TEST(shared_stack_group, nests_many_coroutines_and_propagates_exceptions) {
    shared_stack_group group;
    constexpr std::size_t depth = 30;
    tally t;
    std::vector<coroutine<>> all(depth);
    for (std::size_t i = 0; i < depth; ++i) {
        all[i] = coroutine<>(
            [&, i] {
                counted local(t, 'l');
                this_coroutine::yield();
                if (i + 1 == depth) throw 1;
                all[i + 1].resume();
                all[i + 1].resume();
            },
            {.shared = &group});
    }
    all[0].resume();
    EXPECT_THROW(all[0].resume(), int);
    EXPECT_EQ(t.deaths, std::string(depth, 'l'));
    EXPECT_EQ(t.alive, 0);
}

TEST(shared_stack_group, kills_a_coroutine_that_is_copied_out) {
    shared_stack_group group;
    tally t;
    auto body = [&] {
        counted local(t, 'l');
        this_coroutine::yield();
    };
    coroutine<> a(body, {.shared = &group});
    coroutine<> b(body, {.shared = &group});
    a.resume();
    b.resume();
    EXPECT_TRUE(a.kill());
    EXPECT_EQ(t.deaths, "l");
    b.resume();
    EXPECT_EQ(t.deaths, "ll");
    EXPECT_TRUE(b.done());
}

TEST(shared_stack_group, kills_a_coroutine_from_another_on_the_same_stack) {
    shared_stack_group group;
    tally t;
    coroutine<> victim(
        [&] {
            counted local(t, 'v');
            this_coroutine::yield();
        },
        {.shared = &group});
    coroutine<> killer(
        [&] {
            const std::string kept(64, 'k');
            victim.kill();
            t.deaths += kept[63];
        },
        {.shared = &group});
    victim.resume();
    killer.resume();
    EXPECT_EQ(t.deaths, "vk");
}

TEST(shared_stack_group, lets_bodies_yield_inside_handlers) {
    shared_stack_group group;
    int right = 0;
    auto body = [&right](int mine) {
        try {
            throw mine;
        } catch (const int& n) {
            this_coroutine::yield();
            if (n == mine) ++right;
        }
    };
    coroutine<> a([&] { body(1); }, {.shared = &group});
    coroutine<> b([&] { body(2); }, {.shared = &group});
    for (int i = 0; i < 2; ++i) {
        a.resume();
        b.resume();
    }
    EXPECT_EQ(right, 2);
}

TEST(shared_stack_group, counts_members_and_saved_bytes) {
    shared_stack_group group;
    EXPECT_EQ(group.stats().coroutine_count, 0u);
    auto body = [] {
        char local[1000];
        asm volatile("" : : "r"(local) : "memory");  // all of it is used, before and after
        this_coroutine::yield();
        asm volatile("" : : "r"(local) : "memory");
    };
    std::optional<coroutine<>> a(std::in_place, body, coroutine_options{.shared = &group});
    coroutine<> b(body, {.shared = &group});
    EXPECT_EQ(group.stats().coroutine_count, 2u);
    EXPECT_EQ(group.stats().copy_count, 0u);
    a->resume();
    b.resume();
    const shared_stack_stats s = group.stats();
    EXPECT_GE(s.copy_count, 1u);
    EXPECT_GE(s.saved_bytes, 1000u);
    EXPECT_LT(s.saved_bytes, 16'000u);
    a->resume();
    a.reset();
    EXPECT_EQ(group.stats().coroutine_count, 1u);
}

// Has so many bytes on its stack, all of them in use, before and after it yields.
void yield_above_3000_bytes() {
    char local[3000];
    asm volatile("" : : "r"(local) : "memory");
    this_coroutine::yield();
    asm volatile("" : : "r"(local) : "memory");
}

// Buffers that are cached in a size that no coroutine has any more: no more than a part of all that
// waited once.
TEST(shared_stack_group, bounds_the_spare_buffers_it_caches) {
    shared_stack_group group;
    {
        std::vector<coroutine<>> all;
        for (int i = 0; i < 1000; ++i) {
            all.emplace_back(yield_above_3000_bytes, coroutine_options{.shared = &group});
            all.back().resume();
        }
        EXPECT_GE(group.stats().saved_bytes, 999u * 3000u);
        EXPECT_EQ(group.stats().spare_bytes, 0u);
    }
    EXPECT_EQ(group.stats().saved_bytes, 0u);
    EXPECT_GT(group.stats().spare_bytes, 100'000u);
    EXPECT_LE(group.stats().spare_bytes, 256u * 1024u);
}

TEST(shared_stack_group, reuses_its_spare_buffers) {
    shared_stack_group group;
    const coroutine_options shared{.shared = &group};
    coroutine<> a(yield_above_3000_bytes, shared), b(yield_above_3000_bytes, shared);
    coroutine<> c(yield_above_3000_bytes, shared), d(yield_above_3000_bytes, shared);
    a.resume();
    b.resume();
    a.resume();
    EXPECT_TRUE(a.done());
    EXPECT_GT(group.stats().spare_bytes, 3000u);
    c.resume();
    d.resume();
    EXPECT_EQ(group.stats().spare_bytes, 0u);
}

TEST(shared_stack_group, releases_its_stacks_to_the_default_pool) {
    constexpr std::size_t bytes = 64 * 1024;
    const std::size_t before = default_stack_pool(bytes)->stats().used_count;
    const std::size_t small = default_stack_pool(1)->stats().used_count;
    {
        shared_stack_group group(2, bytes);
        const coroutine_options shared = {.shared = &group};
        std::vector<coroutine<>> all;
        for (int i = 0; i < 4; ++i) {
            all.emplace_back([] { this_coroutine::yield(); }, shared);
            all.back().resume();
        }
        EXPECT_EQ(default_stack_pool(bytes)->stats().used_count, before + 2);
    }
    EXPECT_EQ(default_stack_pool(bytes)->stats().used_count, before);
    EXPECT_EQ(default_stack_pool(1)->stats().used_count, small);
}

// As weft_create() does on a plain thread: one makes what another runs and ends.
TEST(shared_stack_group, counts_members_created_and_destroyed_concurrently) {
    constexpr int made_count = WEFT_TEST_TSAN ? 10'000 : 50'000;
    shared_stack_group group(3);
    std::atomic<coroutine<>*> given{nullptr};
    std::thread ends([&] {
        for (int n = 0; n < made_count; ++n) {
            coroutine<>* c;
            while ((c = given.exchange(nullptr, std::memory_order_acquire)) == nullptr)
                std::this_thread::yield();
            c->resume();
            delete c;
        }
    });
    for (int n = 0; n < made_count; ++n) {
        auto* c = new coroutine<>([] {}, {.shared = &group});
        while (given.load(std::memory_order_relaxed) != nullptr) std::this_thread::yield();
        given.store(c, std::memory_order_release);
        EXPECT_LE(group.stats().coroutine_count, 3u);
    }
    ends.join();
    EXPECT_EQ(group.stats().coroutine_count, 0u);
}

// Calls f with so much of the stack in use that a buffer of its own is needed to copy it out.
template <std::size_t Bytes, class F>
WEFT_NOINLINE void in_frame_of(F f) {
    volatile char much[Bytes];
    much[0] = 1;
    much[Bytes - 1] = 1;
    f();
    EXPECT_EQ(much[0] + much[Bytes - 1], 2);
}

// Which call for memory is the first, and how large a frame is, is checked for GCC's code only;
// test/alloc has the same law with every call for memory that fails, and for every compiler.
#if !WEFT_TEST_ASAN && !WEFT_TEST_TSAN && !WEFT_CLANG

TEST(shared_stack_group, is_unchanged_when_a_resume_runs_out_of_memory) {
    shared_stack_group group;
    int ran = 0;
    coroutine<> c(
        [&] {
            ++ran;
            this_coroutine::yield();
            ++ran;
        },
        {.shared = &group});
    const auto refused_once = [&](coroutine_state is) {
        const std::size_t saved = group.stats().saved_bytes;
        {
            const testing::allocation_fails no_memory(1);
            EXPECT_THROW(c.resume(), std::bad_alloc);
        }
        EXPECT_EQ(c.state(), is);
        EXPECT_EQ(group.stats().saved_bytes, saved);
        c.resume();
    };
    coroutine<> outer(
        [&] {
            in_frame_of<4000>([&] { refused_once(coroutine_state::ready); });
            this_coroutine::yield();
            in_frame_of<9000>([&] { refused_once(coroutine_state::suspended); });
        },
        {.shared = &group});
    outer.resume();
    EXPECT_EQ(ran, 1);
    outer.resume();
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(c.done() && outer.done());
}

TEST(shared_stack_group_death, kill_and_yield_without_memory) {
    shared_stack_group group;
    const auto yields = [] {
        this_coroutine::yield();
        in_frame_of<20000>([] {
            const testing::allocation_fails no_memory(1);
            this_coroutine::yield();
        });
    };
    coroutine<> c(yields, {.name = "inner", .shared = &group});
    coroutine<> kills(
        [&] {
            c.resume();
            in_frame_of<9000>([&] {
                const testing::allocation_fails no_memory(2);  // the first is of the request
                c.kill();
            });
        },
        {.shared = &group});
    EXPECT_DEATH(kills.resume(), "weft: out of memory: no room .* that is killed.*inner");
    coroutine<> twice(
        [&] {
            c.resume();
            c.resume();
        },
        {.shared = &group});
    EXPECT_DEATH(twice.resume(), "weft: out of memory: no room .* that yields.*inner");
}

#endif

TEST(shared_stack_group, allows_resume_with_from_another_stack) {
    shared_stack_group group;
    int seen = 0;
    coroutine<> c([] { this_coroutine::yield(); }, {.shared = &group});
    c.resume();
    c.resume_with([&] { seen = 1; });
    EXPECT_EQ(seen, 1);
    EXPECT_TRUE(c.done());
}

TEST(shared_stack_group_death, resume_with_from_the_same_stack) {
    shared_stack_group group;
    coroutine<> c([] { this_coroutine::yield(); }, {.name = "inner", .shared = &group});
    coroutine<> outer([&] { c.resume_with([] {}); }, {.shared = &group});
    EXPECT_DEATH(outer.resume(), "weft: resume_with between coroutines on one shared.*inner");
}

TEST(shared_stack_group_death, switch_to_on_a_shared_stack) {
    shared_stack_group group;
    coroutine<> c([] {}, {.name = "next", .shared = &group});
    coroutine<> other([&] { c.switch_to(); });
    EXPECT_DEATH(other.resume(), "weft: switch_to with a coroutine on a shared stack.*next");
}

TEST(shared_stack_group_death, resume_on_another_thread) {
    auto die = [] {
        shared_stack_group group;
        coroutine<> c([] { this_coroutine::yield(); }, {.name = "mine", .shared = &group});
        c.resume();
        std::thread([&] { c.resume(); }).join();
    };
    EXPECT_DEATH(die(), "weft: resume of a coroutine on a shared stack by a thread other.*mine");
}

TEST(shared_stack_group_death, destruction_before_its_coroutines) {
    auto die = [] {
        auto group = std::make_unique<shared_stack_group>();
        coroutine<> c([] {}, {.shared = group.get()});
        group.reset();
    };
    EXPECT_DEATH(die(), "weft: destruction of a shared_stack_group whose coroutines live");
}

// The shape of a completion: a waiter gives the address of a local, and the local is written to
// while the coroutine is suspended. ASan reports it at once, a debug build at the next resume.
#if WEFT_ASAN || WEFT_DEBUG
TEST(shared_stack_group_death, write_to_a_local_of_a_suspended_coroutine) {
    auto die = [] {
        shared_stack_group group;
        volatile char* buffer = nullptr;
        coroutine<> c(
            [&] {
                char* local = static_cast<char*>(__builtin_alloca(64));
                buffer = local;
                this_coroutine::yield();
            },
            {.shared = &group});
        c.resume();
        buffer[10] = 'x';
        c.resume();
    };
    EXPECT_DEATH(die(), WEFT_ASAN ? "AddressSanitizer: use-after-poison"
                                  : "weft: a write through a pointer into a shared stack");
}
#endif

}  // namespace
}  // namespace weft
