// cppcoro: task and generator, and when_all on its static_thread_pool.
//
// A task has no resume of its own: the first resume is that of its handle, the task's only member,
// and the others are those of the handle that the await left behind.
#pragma once

#include <coroutine>
#include <cppcoro/generator.hpp>
#include <cppcoro/schedule_on.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"

namespace bench {

struct cppcoro_task : stackless_peer {
    static constexpr const char* name = "cppcoro.task";

    // The handle of a task without an awaiter; its resume returns at a suspension or at the end.
    template <class T>
    static std::coroutine_handle<> handle_of(cppcoro::task<T>& t) {
        using promise = typename cppcoro::task<T>::promise_type;
        static_assert(sizeof t == sizeof(std::coroutine_handle<promise>));
        std::coroutine_handle<promise> handle;
        std::memcpy(static_cast<void*>(&handle), static_cast<void*>(&t), sizeof handle);
        handle.promise().set_continuation(std::noop_coroutine());
        return handle;
    }

    class coroutine {
    public:
        template <class Body>
        explicit coroutine(Body body) : task_(run(body)), frame_(handle_of(task_)) {}
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        [[gnu::always_inline]] void resume() { frame_.resume(); }

    private:
        template <unsigned Weight>
        static cppcoro::task<> run(counting<Weight>) {
            do {
                world.resumes += Weight;
                co_await std::suspend_always{};
            } while (!world.finishing);
        }
        static cppcoro::task<> run(holding) {
            world.resumes += 1;
            counted object;
            escape(&object);
            co_await std::suspend_always{};
        }
        static cppcoro::task<> run(empty_handed) {
            world.resumes += 1;
            co_await std::suspend_always{};
        }

        cppcoro::task<> task_;
        std::coroutine_handle<> frame_;
    };

    template <class Body>
    static coroutine make(stacks&, Body body) {
        return coroutine(body);
    }

    static cppcoro::task<std::uint64_t> sum_of(std::uint64_t number, std::uint64_t leaves) {
        if (leaves == 1) co_return number;
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t part = leaves / 10;
            sum += co_await sum_of(number + i * part, part);
        }
        co_return sum;
    }
    static std::uint64_t skynet(stacks&) { return cppcoro::sync_wait(sum_of(0, skynet_leaves)); }
};

struct cppcoro_generator : stackless_peer {
    static constexpr const char* name = "cppcoro.generator";
    using numbers = cppcoro::generator<const std::uint64_t>;

    class coroutine {
    public:
        template <class Body>
        explicit coroutine(Body body) : numbers_(run(body)) {}
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        [[gnu::always_inline]] void resume() {
            if (at_)
                ++*at_;
            else
                at_.emplace(numbers_.begin());
        }

    private:
        template <unsigned Weight>
        static numbers run(counting<Weight>) {
            do {
                world.resumes += Weight;
                co_yield Weight;
            } while (!world.finishing);
        }
        static numbers run(holding) {
            world.resumes += 1;
            counted object;
            escape(&object);
            co_yield 1;
        }
        static numbers run(empty_handed) {
            world.resumes += 1;
            co_yield 1;
        }

        numbers numbers_;
        std::optional<numbers::iterator> at_;
    };

    template <class Body>
    static coroutine make(stacks&, Body body) {
        return coroutine(body);
    }

    // Gives one number, the sum of its leaves.
    static numbers sum_of(std::uint64_t number, std::uint64_t leaves) {
        if (leaves == 1) {
            co_yield number;
            co_return;
        }
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t part = leaves / 10;
            for (const std::uint64_t child : sum_of(number + i * part, part)) sum += child;
        }
        co_yield sum;
    }
    static std::uint64_t skynet(stacks&) {
        std::uint64_t sum = 0;
        for (const std::uint64_t all : sum_of(0, skynet_leaves)) sum += all;
        return sum;
    }
};

// One child of a call is queued for whichever thread is free, the last runs at once.
struct cppcoro_pool {
    static constexpr const char* name = "cppcoro.static_thread_pool";

    class workers {
    public:
        explicit workers(unsigned threads) : pool_(threads) {}
        std::uint64_t fib(int n) { return run(fib_of(n)); }
        std::uint64_t skynet(std::uint64_t leaves) { return run(sum_of(0, leaves)); }

    private:
        using task = cppcoro::task<std::uint64_t>;

        std::uint64_t run(task t) {
            return cppcoro::sync_wait(cppcoro::schedule_on(pool_, std::move(t)));
        }
        task fib_of(int n) {
            if (n < 2) co_return static_cast<std::uint64_t>(n);
            auto [a, b] = co_await cppcoro::when_all(cppcoro::schedule_on(pool_, fib_of(n - 1)),
                                                     fib_of(n - 2));
            co_return a + b;
        }
        task sum_of(std::uint64_t number, std::uint64_t leaves) {
            if (leaves == 1) co_return number;
            const std::uint64_t part = leaves / 10;
            std::vector<task> children;
            children.reserve(10);
            for (std::uint64_t i = 0; i != 9; ++i)
                children.push_back(cppcoro::schedule_on(pool_, sum_of(number + i * part, part)));
            children.push_back(sum_of(number + 9 * part, part));
            std::uint64_t sum = 0;
            for (const std::uint64_t s : co_await cppcoro::when_all(std::move(children))) sum += s;
            co_return sum;
        }

        cppcoro::static_thread_pool pool_;
    };
};

struct lists : no_peers<lists> {
    static constexpr peers<cppcoro_task, cppcoro_generator> stackless{};
    static constexpr peers<cppcoro_pool> fib{};
    static constexpr peers<cppcoro_pool> skynet{};
};

}  // namespace bench
