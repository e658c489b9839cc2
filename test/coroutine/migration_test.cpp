// A coroutine continues on any thread, never from a stale context and never with
// another thread's state.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/detail/block_cache.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/stack/mapped_stack.hpp"

namespace weft {
namespace {

constexpr int exchanges = WEFT_TEST_TSAN || WEFT_TEST_ASAN      ? 200'000
                          : WEFT_DEBUG || WEFT_BACKEND_UCONTEXT ? 1'000'000
                                                                : 10'000'000;

// Both threads try at all times: the winner must find the context complete. `count` is no atomic:
// TSan reports if two turns are not ordered.
TEST(migration, has_one_winner_that_finds_the_context_complete) {
    int count = 0;
    coroutine<int()> c([&] {
        for (;;) {
            const int before = ++count;
            this_coroutine::yield<int()>(before);
            if (before != count) return -1;
        }
    });
    std::atomic<int> resumes = 0;
    std::atomic<bool> wrong = false;
    auto agent = [&] {
        while (resumes.load(std::memory_order_relaxed) < exchanges) {
            const result<int> r = c.try_resume();
            if (!r) {
                if (r.error() != std::errc::resource_unavailable_try_again) wrong = true;
                continue;
            }
            resumes.fetch_add(1, std::memory_order_relaxed);
            if (*r <= 0) wrong = true;
        }
    };
    std::thread other(agent);
    agent();
    other.join();
    EXPECT_FALSE(wrong);
    EXPECT_EQ(count, resumes.load());
}

// In turns, each resume on the other thread than the one before.
TEST(migration, moves_to_another_thread_at_every_yield) {
    constexpr int hops = exchanges / 50;  // a turn may cost a time slice
    int count = 0;
    coroutine<> c([&] {
        const std::uint64_t id = this_coroutine::id();
        for (;;) {
            ++count;
            this_coroutine::yield();
            if (this_coroutine::id() != id) std::abort();
        }
    });
    std::atomic<int> turn = 0;
    auto agent = [&](int parity) {
        for (int i = parity; i < hops; i += 2) {
            while (turn.load(std::memory_order_acquire) != i) std::this_thread::yield();
            c.resume();
            turn.store(i + 1, std::memory_order_release);
        }
    };
    std::thread other(agent, 1);
    agent(0);
    other.join();
    EXPECT_EQ(count, hops);
}

[[gnu::noinline]] void throw_and_catch() {
    try {
        throw std::uncaught_exceptions();
    } catch (int uncaught) {
        if (uncaught != 0 || std::current_exception() == nullptr) std::abort();
    }
}

struct to_this_threads_cache {
    void operator()(void* block) const { detail::block_cache::release(block, 100); }
};

TEST(migration, uses_the_state_of_the_new_thread_after_each_move) {
    // Everything of the library's that is per thread, in one function that a compiler may inline.
    bool right = true;
    coroutine<> c([&] {
        const std::uint64_t id = this_coroutine::id();
        for (;;) {
            std::unique_ptr<void, to_this_threads_cache> block(detail::block_cache::acquire(100));
            throw_and_catch();
            coroutine<> inner([&] { right = right && this_coroutine::id() != id; });
            inner.resume();
            this_coroutine::yield();
            block.reset();
            right = right && this_coroutine::exists() && this_coroutine::id() == id;
            throw_and_catch();
        }
    });
    for (int i = 0; i < 50; ++i) {
        c.resume();
        std::thread([&] {
            c.resume();
            EXPECT_FALSE(this_coroutine::exists());
        }).join();
        EXPECT_FALSE(this_coroutine::exists());
    }
    EXPECT_TRUE(right);
}

// Suspends the caller that acquires a stack.
struct stacks_after_a_wait {
    mapped_stack stacks{64 * 1024};

    stack acquire() noexcept {
        this_coroutine::yield();
        return stacks.acquire();
    }
    void release(stack s) noexcept { stacks.release(s); }
    std::size_t stack_bytes() const noexcept { return stacks.stack_bytes(); }
};

// T2: the resumer, or the coroutine that transfers, has left its thread meanwhile.
TEST(migration, during_a_wait_for_a_stack_resumes_on_the_new_thread) {
    for (const fp_environment fp : {fp_environment::own, fp_environment::shared}) {
        stacks_after_a_wait stacks;
        std::string order;
        coroutine<> inner(
            [&] {
                order += "inner ";
                this_coroutine::yield();
                order += "again ";
            },
            {.stack = stacks, .fp = fp});
        coroutine<> next([&] { order += "next "; }, {.stack = stacks, .fp = fp});
        coroutine<> outer(
            [&] {
                inner.resume();
                order += "outer ";
                inner.resume();
                next.switch_to();
                order += "end";
            },
            {.fp = fp});
        outer.resume();  // waits for inner's stack
        std::thread([&] {
            outer.resume();  // waits for next's
            EXPECT_EQ(order, "inner outer again ");
            EXPECT_FALSE(this_coroutine::exists());
        }).join();
        outer.resume();
        EXPECT_EQ(order, "inner outer again next ");
        EXPECT_TRUE(next.done());
        outer.resume();
        EXPECT_EQ(order, "inner outer again next end");
        EXPECT_FALSE(this_coroutine::exists());
    }
}

// A body that stays on one thread may keep what is the thread's, as plain code does.
thread_local int plain = 0;

TEST(migration, keeps_thread_locals_of_a_body_that_stays_on_its_thread) {
    auto stay = [] {
        bool right = true;
        auto count_up = [&] {
            for (int* mine = &plain;;) {
                const int before = ++*mine;
                this_coroutine::yield();
                right = right && mine == &plain && plain > before;
            }
        };
        coroutine<> a(count_up), b(count_up);
        for (int i = 0; i < 1000; ++i) a.resume(), b.resume();
        EXPECT_TRUE(right);
        EXPECT_EQ(plain, 2000);
        plain = 0;
    };
    std::thread other(stay);
    stay();
    other.join();
}

TEST(migration, kills_on_a_thread_other_than_the_one_it_ran_on) {
    auto alive = std::make_shared<int>(0);
    coroutine<> c([alive] {
        const auto local = alive;
        this_coroutine::yield();
    });
    c.resume();
    std::thread([&] { c.kill(); }).join();
    EXPECT_EQ(alive.use_count(), 1);
    std::thread([d = coroutine<>([alive] {})]() mutable { d.resume(); }).join();
    EXPECT_EQ(alive.use_count(), 1);
}

TEST(migration, assigns_unique_ids_across_threads) {
    constexpr std::size_t each = 3000;
    std::vector<std::uint64_t> ids[2];
    auto make = [&](std::size_t who) {
        for (std::size_t i = 0; i < each; ++i) ids[who].push_back(coroutine<>([] {}).id());
    };
    std::thread other(make, 1);
    make(0);
    other.join();
    std::vector<std::uint64_t> all = ids[0];
    all.insert(all.end(), ids[1].begin(), ids[1].end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

}  // namespace
}  // namespace weft
