// C++20 coroutines, written by hand with nothing to spare: the frame comes from operator new,
// resume is the handle's, an awaited child transfers symmetrically.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "bench/bodies.hpp"
#include "bench/harness.hpp"

namespace bench {

struct std_coroutine : stackless_peer {
    static constexpr const char* name = "std.coroutine";

    class coroutine {
    public:
        struct promise_type {
            coroutine get_return_object() {
                return coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
            }
            std::suspend_always initial_suspend() noexcept { return {}; }
            std::suspend_always final_suspend() noexcept { return {}; }
            void return_void() {}
            void unhandled_exception() { std::terminate(); }
        };

        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        ~coroutine() { frame_.destroy(); }
        [[gnu::always_inline]] void resume() { frame_.resume(); }

    private:
        explicit coroutine(std::coroutine_handle<> h) : frame_(h) {}
        std::coroutine_handle<> frame_;
    };

    template <unsigned Weight>
    static coroutine make(stacks&, counting<Weight>) {
        do {
            world.resumes += Weight;
            co_await std::suspend_always{};
        } while (!world.finishing);
    }
    static coroutine make(stacks&, holding) {
        world.resumes += 1;
        counted object;
        escape(&object);
        co_await std::suspend_always{};
    }
    static coroutine make(stacks&, empty_handed) {
        world.resumes += 1;
        co_await std::suspend_always{};
    }

    // A lazy task with a value.
    class summing {
    public:
        struct promise_type {
            std::coroutine_handle<> awaiting = std::noop_coroutine();
            std::uint64_t sum = 0;

            struct back_to_awaiting {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(
                    std::coroutine_handle<promise_type> h) noexcept {
                    return h.promise().awaiting;
                }
                void await_resume() noexcept {}
            };
            summing get_return_object() {
                return summing(std::coroutine_handle<promise_type>::from_promise(*this));
            }
            std::suspend_always initial_suspend() noexcept { return {}; }
            back_to_awaiting final_suspend() noexcept { return {}; }
            void return_value(std::uint64_t value) { sum = value; }
            void unhandled_exception() { std::terminate(); }
        };

        summing(const summing&) = delete;
        summing& operator=(const summing&) = delete;
        ~summing() { frame_.destroy(); }

        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
            frame_.promise().awaiting = awaiting;
            return frame_;
        }
        std::uint64_t await_resume() noexcept { return frame_.promise().sum; }

        std::uint64_t run() {
            frame_.resume();
            return frame_.promise().sum;
        }

    private:
        explicit summing(std::coroutine_handle<promise_type> h) : frame_(h) {}
        std::coroutine_handle<promise_type> frame_;
    };

    static summing sum_of(std::uint64_t number, std::uint64_t leaves) {
        if (leaves == 1) co_return number;
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t part = leaves / 10;
            sum += co_await sum_of(number + i * part, part);
        }
        co_return sum;
    }
    static std::uint64_t skynet(stacks&) { return sum_of(0, skynet_leaves).run(); }
};

}  // namespace bench
