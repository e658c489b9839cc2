// agents: the same body run by a fiber, by a C++20 task, by a coroutine outside any flow and by a
// plain thread, on one loop or on two, so that a law of an awaited object is written once and holds
// for all.
//
// A body is a coroutine that awaits through `wait`: a fiber and a thread block there, on their own
// stack, and the coroutine never suspends; a task and a coroutine outside any flow suspend.
//
//   weft::testing::agents p(place::two_loops);
//   p.add(kind::fiber, [&](auto wait) -> weft::task<> { co_await wait(m.async_lock()); ... });
//   p.run();                                   // until all have ended
//
// TEST_P(mutex_among, ...) with INSTANTIATE_AMONG(mutex_among) runs over every pair of kinds on
// one and on two loops.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/await.hpp"

namespace weft::testing {

enum class kind { fiber, task, thread, coroutine };
enum class place { one_loop, two_loops };

// What came of a wait that was blocked for, for co_await.
template <class T>
struct had {
    T value;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    T await_resume() { return std::forward<T>(value); }
};
template <>
struct had<void> : std::suspend_never {};

struct blocks {
    template <class A>
    auto operator()(A&& a) const {
        using T = await_result_t<A>;
        if constexpr (std::is_void_v<T>) {
            await(std::forward<A>(a));
            return had<void>();
        } else {
            return had<T>{await(std::forward<A>(a))};
        }
    }
};
struct suspends {
    template <class A>
    A&& operator()(A&& a) const noexcept {
        return std::forward<A>(a);
    }
};

class agents {
public:
    explicit agents(place p) : loop_count_(p == place::one_loop ? 1 : 2) {}

    template <class Body>
    void add(kind k, Body body) {
        ++living_;
        loop& l = loops_[added_++ % loop_count_];
        if (k == kind::task) {
            tasks_.emplace_back(ending(std::move(body)), l)->post_first_turn();
        } else if (k == kind::coroutine) {
            coroutines_.push_back(ending(std::move(body)));
            l.post([&t = coroutines_.back()] { t.start(); });
        } else if (k == kind::fiber) {
            fibers_.emplace_back(blocking_body(std::move(body)), fiber_options{.on = l});
        } else {
            threads_.push_back(blocking_body(std::move(body)));
        }
    }

    void run() {
        std::list<std::thread> threads;
        for (auto& body : threads_) threads.emplace_back(body);
        for (std::size_t i = 0; i < loop_count_; ++i)
            threads.emplace_back([this, i] {
                while (living_ != 0) loops_[i].run_once(after(loops_[i].now(), patience));
                loops_[i].run_until_idle();
            });
        for (std::thread& t : threads) t.join();
        for (fiber& f : fibers_) f.join();
    }

private:
    // No run needs it: the last agent to end wakes the loops.
    static constexpr duration patience = std::chrono::seconds(1);

    template <class Body>
    auto blocking_body(Body body) {
        return [this, body = std::move(body)] {
            try {
                task<> t = body(blocks());
                t.start();
                ASSERT_TRUE(t.done());
                t.get();
            } catch (const stopped&) {
                ADD_FAILURE() << "stopped";
            } catch (const std::exception& e) {
                ADD_FAILURE() << e.what();
            }
            end();
        };
    }
    template <class Body>
    task<> ending(Body body) {
        try {
            co_await body(suspends());
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
        end();
    }
    void end() {
        if (--living_ != 0) return;
        for (std::size_t i = 0; i < loop_count_; ++i) loops_[i].post([] {});
    }

    std::size_t loop_count_;
    std::size_t added_ = 0;
    std::atomic<int> living_{0};
    loop loops_[2];
    std::list<detail::task_run<void>> tasks_;
    std::list<task<>> coroutines_;
    std::list<fiber> fibers_;
    std::list<std::function<void()>> threads_;
};

using cast = std::tuple<kind, kind, place>;

inline std::string name_of_cast(const ::testing::TestParamInfo<cast>& info) {
    static constexpr const char* kinds[] = {"fiber", "task", "thread", "coroutine"};
    const auto [a, b, p] = info.param;
    return std::string(kinds[static_cast<int>(a)]) + "_" + kinds[static_cast<int>(b)] +
           (p == place::one_loop ? "_one_loop" : "_two_loops");
}

class among : public ::testing::TestWithParam<cast> {
protected:
    // Two agents, one of each kind.
    template <class A, class B>
    void run(A a, B b) {
        const auto [ka, kb, p] = GetParam();
        agents all(p);
        all.add(ka, std::move(a));
        all.add(kb, std::move(b));
        all.run();
    }
    // The same body for `n` agents, of the two kinds by turns.
    template <class Body>
    void run_many(int n, Body body) {
        const auto [ka, kb, p] = GetParam();
        agents all(p);
        for (int i = 0; i < n; ++i) all.add(i % 2 == 0 ? ka : kb, body);
        all.run();
    }
};

#define WEFT_INSTANTIATE_AMONG_KINDS(suite, ...)                                                 \
    INSTANTIATE_TEST_SUITE_P(                                                                    \
        agents, suite,                                                                           \
        ::testing::Combine(                                                                      \
            ::testing::Values(__VA_ARGS__), ::testing::Values(__VA_ARGS__),                      \
            ::testing::Values(weft::testing::place::one_loop, weft::testing::place::two_loops)), \
        weft::testing::name_of_cast)

#define WEFT_INSTANTIATE_AMONG(suite)                                                          \
    WEFT_INSTANTIATE_AMONG_KINDS(suite, weft::testing::kind::fiber, weft::testing::kind::task, \
                                 weft::testing::kind::thread, weft::testing::kind::coroutine)

}  // namespace weft::testing
