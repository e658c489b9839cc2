#include "weft/wait/await.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/wait/names.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace testing::names;

// A lazy coroutine that is not weft's, and is independent of it.
template <class T>
struct foreign_task {
    struct promise_type {
        std::coroutine_handle<> then;
        std::exception_ptr error;
        std::unique_ptr<T> value;
        foreign_task get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct ending {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(
                    std::coroutine_handle<promise_type> h) noexcept {
                    return h.promise().then;
                }
                void await_resume() noexcept {}
            };
            return ending();
        }
        void return_value(T x) { value = std::make_unique<T>(std::move(x)); }
        void unhandled_exception() { error = std::current_exception(); }
    };

    foreign_task(std::coroutine_handle<promise_type> h) : handle(h) {}
    foreign_task(foreign_task&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    ~foreign_task() {
        if (handle) handle.destroy();
    }
    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) {
        handle.promise().then = h;
        return handle;
    }
    T await_resume() {
        if (handle.promise().error) std::rethrow_exception(handle.promise().error);
        return std::move(*handle.promise().value);
    }
    std::coroutine_handle<promise_type> handle;
};

// Continues on a thread of its own, which is not weft's.
struct other_thread {
    std::thread& started;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> h) {
        std::thread& to = started;  // this may be destroyed as soon as the thread runs
        to = std::thread([h] { h.resume(); });
    }
    void await_resume() {}
};

template <class T>
struct ready_with {
    T value;
    bool await_ready() { return true; }
    void await_suspend(std::coroutine_handle<>) {}
    T await_resume() { return std::forward<T>(value); }
};

foreign_task<int> add(int a, int b) { co_return a + b; }
foreign_task<int> fail_with(std::string what) {
    if (!what.empty()) throw std::runtime_error(what);
    co_return 0;
}
foreign_task<int> pass_then(gate& g, int n) {
    co_await g.async_pass();
    co_return n;
}

TEST(await, of_an_operation_blocks_until_it_is_woken) {
    gate g;
    std::thread other([&] {
        while (!g.let_one_pass()) std::this_thread::yield();
    });
    sync_wait(g.async_pass());
    other.join();
    EXPECT_FALSE(g.anybody_waits());
}

TEST(await, of_a_coroutine_keeps_no_memory) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    const std::size_t before = detail::block_cache::stats().used_bytes;
    EXPECT_EQ(sync_wait(ready_with<int>{5}), 5);
    EXPECT_EQ(detail::block_cache::stats().used_bytes, before);
}

TEST(await, returns_whatever_an_awaitable_returns) {
    EXPECT_EQ(sync_wait(add(1, 2)), 3);  // a temporary
    auto named = add(3, 4);
    EXPECT_EQ(sync_wait(named), 7);  // a reference to what outlives it
    EXPECT_EQ(await(ready_with<int>{5}), 5);
    EXPECT_EQ(*sync_wait(ready_with<std::unique_ptr<int>>{std::make_unique<int>(6)}), 6);
    int n = 0;
    int& r = sync_wait(ready_with<int&>{n});  // the reference itself
    EXPECT_EQ(&r, &n);
    auto u = std::make_unique<int>(8);
    std::unique_ptr<int>&& moved = sync_wait(ready_with<std::unique_ptr<int>&&>{std::move(u)});
    EXPECT_EQ(&moved, &u);
    sync_wait(std::suspend_never());  // void
    static_assert(std::is_void_v<decltype(sync_wait(std::suspend_never()))>);
}

struct no_default {
    explicit no_default(int n) : number(n) {}
    no_default(no_default&&) = default;
    int number;
};
struct alignas(64) wide {
    int number;
};
struct throws_when_moved {
    bool armed = false;
    throws_when_moved() = default;
    explicit throws_when_moved(bool a) : armed(a) {}
    throws_when_moved(throws_when_moved&& other) : armed(other.armed) {
        if (armed) throw std::runtime_error("moved");
    }
};

TEST(await, returns_undefaultable_overaligned_and_throwing_types) {
    EXPECT_EQ(sync_wait(ready_with<no_default>{no_default(3)}).number, 3);
    for (int i = 0; i < 8; ++i) {
        const wide w = sync_wait(ready_with<wide>{{i}});
        EXPECT_EQ(w.number, i);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&w) % 64, 0u);
    }
    EXPECT_FALSE(sync_wait(ready_with<throws_when_moved>{}).armed);
    EXPECT_THROW(sync_wait(ready_with<throws_when_moved>{throws_when_moved(true)}),
                 std::runtime_error);
}

// Not a copy of it, and nothing that it was moved into.
TEST(await, awaits_the_given_object_itself) {
    struct pinned {
        const pinned* self = this;
        bool same = false;
        pinned() = default;
        pinned(const pinned&) = delete;
        bool await_ready() { return false; }
        bool await_suspend(std::coroutine_handle<>) {
            same = self == this;
            return false;
        }
        bool await_resume() { return same && self == this; }
    };
    struct copied : ready_with<int> {
        bool await_ready() {
            ++value;
            return true;
        }
    };
    pinned named;
    EXPECT_TRUE(sync_wait(named));
    EXPECT_TRUE(named.same);
    EXPECT_TRUE(sync_wait(pinned()));
    copied c{{1}};
    EXPECT_EQ(sync_wait(c), 2);
    EXPECT_EQ(c.value, 2);
}

TEST(await, rethrows_the_awaitables_exception) {
    EXPECT_THROW(sync_wait(fail_with("down")), std::runtime_error);
    EXPECT_EQ(sync_wait(fail_with("")), 0);
    const auto late = [](gate& g) -> foreign_task<int> {
        co_await g.async_pass();
        throw std::runtime_error("late");
    };
    gate g;
    std::thread other([&] { g.open(); });
    EXPECT_THROW(sync_wait(late(g)), std::runtime_error);
    other.join();
}

TEST(await, of_a_suspended_coroutine_sleeps_until_it_is_done) {
    gate g;
    std::thread other([&] {
        while (!g.let_one_pass()) std::this_thread::yield();
    });
    EXPECT_EQ(sync_wait(pass_then(g, 9)), 9);
    other.join();
}

TEST(await, of_a_coroutine_resumes_it_on_the_thread_that_waits) {
    gate g;
    const auto where = [](gate& gate) -> foreign_task<std::thread::id> {
        co_await gate.async_pass();
        co_return std::this_thread::get_id();
    };
    std::thread other([&] {
        while (!g.let_one_pass()) std::this_thread::yield();
    });
    EXPECT_EQ(sync_wait(where(g)), std::this_thread::get_id());
    other.join();
}

// It ends on another thread than it started on, before, while or after the first goes to sleep.
TEST(await, of_a_coroutine_that_switches_threads_completes) {
    const int rounds = slow ? 300 : 1'000;
    const auto hop = [](std::thread& first, std::thread& second, int n) -> foreign_task<int> {
        co_await other_thread{first};
        if (n % 2 == 0) co_await other_thread{second};
        co_return n;
    };
    for (int i = 0; i < rounds; ++i) {
        std::thread first;
        std::thread second;
        EXPECT_EQ(sync_wait(hop(first, second, i)), i);
        first.join();
        if (second.joinable()) second.join();
    }
}

TEST(await, many_immediate_completions_do_not_grow_the_stack) {
    const int rounds = slow ? 10'000 : 100'000;
    int sum = 0;
    for (int i = 0; i < rounds; ++i) sum += sync_wait(ready_with<int>{1});
    EXPECT_EQ(sum, rounds);
}

// A destructor that runs because of an exception awaits a coroutine of several waits.
TEST(await, in_a_destructor_during_unwinding_is_not_stopped) {
    struct cleanup {
        gate& g;
        bool& through;
        ~cleanup() {
            flow& f = *current_flow();
            EXPECT_EQ(f.shields, 0);
            const auto body = [](flow& of, gate& gate) -> foreign_task<int> {
                EXPECT_EQ(of.pending_stop(), stop_reason::none);
                co_await gate.async_pass();
                EXPECT_EQ(of.pending_stop(), stop_reason::none);
                co_await gate.async_pass();
                co_return 1;
            };
            EXPECT_EQ(sync_wait(body(f, g)), 1);
            EXPECT_EQ(f.shields, 0);
            through = true;
        }
    };
    manual_executor on;
    gate g;
    g.open();
    bool through = false;
    // The flow of a thread, as if it had a turn.
    flow& own = detail::this_thread_host().own_flow();
    on.call(
        [&] {
            own.set_deadline(steady_now() - 1s);
            try {
                const cleanup c{g, through};
                throw std::runtime_error("down");
            } catch (const std::runtime_error&) {
            }
            EXPECT_EQ(own.pending_stop(), stop_reason::deadline);
            own.set_deadline(never);
        },
        &own);
    EXPECT_TRUE(through);
}

// ---------------------------------------------------------------------------------------- misuse

TEST(await_death, a_blocking_wait_in_a_coroutine) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    const auto body = [](gate& gate) -> plain_coroutine {
        await(gate.async_pass());
        co_return;
    };
    plain_coroutine c = body(g);
    EXPECT_DEATH(c.start(on, &f),
                 "weft: a blocking wait in a coroutine: co_await it: coroutine 7 \"test\" "
                 "\\(.*await_test.cpp:");
    const auto other = []() -> plain_coroutine {
        sync_wait(std::suspend_always());
        co_return;
    };
    plain_coroutine d = other();
    EXPECT_DEATH(d.start(on, &f), "weft: a blocking wait in a coroutine: co_await it");
}

TEST(await_death, a_blocking_wait_on_an_executor_outside_any_flow) {
    manual_executor on;
    gate g;
    EXPECT_DEATH(on.call([&] { sync_wait(g.async_pass()); }),
                 "weft: a blocking wait in what an executor runs outside of any fiber: co_await it "
                 "\\(.*await_test.cpp:");
}

TEST(await_death, a_blocking_wait_in_work_run_by_a_waiting_thread) {
    gate g;
    const auto body = [](gate& gate) -> foreign_task<int> {
        co_await sleep_for(0ns);
        sync_wait(gate.async_pass());
        co_return 0;
    };
    EXPECT_DEATH(sync_wait(body(g)), "weft: a blocking wait in what an executor runs");
}

// An operation that need not wait may be awaited anywhere.
TEST(await, of_a_ready_operation_is_allowed_anywhere) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    g.open();
    on.call([&] { await(g.async_pass()); }, &f);
    on.call([&] { await(g.async_pass()); });
    EXPECT_EQ(on.run_all(), 0u);
}

}  // namespace
}  // namespace weft
