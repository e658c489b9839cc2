// A hand-written coroutine that receives values, as small as possible: the value waits in the
// promise.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "bench/bodies.hpp"
#include "bench/value_types.hpp"

namespace bench {

struct std_coroutine_value : stackless_peer {
    static constexpr const char* name = "std.coroutine";

    template <class T>
    class receiver {
    public:
        struct promise_type {
            std::optional<T> value{};

            struct next {
                promise_type& promise;
                bool await_ready() const noexcept { return false; }
                void await_suspend(std::coroutine_handle<>) const noexcept {}
                T await_resume() const noexcept { return *std::exchange(promise.value, {}); }
            };
            next await_transform(std::suspend_always) noexcept { return {*this}; }
            receiver get_return_object() {
                return receiver(std::coroutine_handle<promise_type>::from_promise(*this));
            }
            std::suspend_never initial_suspend() noexcept { return {}; }
            std::suspend_always final_suspend() noexcept { return {}; }
            void return_void() {}
            void unhandled_exception() { std::terminate(); }
        };

        receiver() : receiver(run()) {}
        receiver(const receiver&) = delete;
        receiver& operator=(const receiver&) = delete;
        ~receiver() { frame_.destroy(); }
        void give(T value) {
            frame_.promise().value.emplace(std::move(value));
            frame_.resume();
        }

    private:
        explicit receiver(std::coroutine_handle<promise_type> h) : frame_(h) {}
        static receiver run() {
            for (;;) world.resumes += number_of(co_await std::suspend_always{});
        }
        std::coroutine_handle<promise_type> frame_;
    };
};

}  // namespace bench
