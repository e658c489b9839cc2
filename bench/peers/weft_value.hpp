// Values for the waiters of weft: a coroutine, whose resume takes a value, and a task, resumed as
// an event resumes a task: by the handle that the await left behind.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "bench/bodies.hpp"
#include "bench/value_types.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/task/task.hpp"

namespace bench {

struct weft_coroutine_value : stackful_peer {
    static constexpr const char* name = "weft.coroutine";

    template <class T>
    class receiver {
    public:
        // The first value enters the coroutine.
        receiver()
            : coroutine_([](T first) {
                  world.resumes += number_of(first);
                  for (;;) world.resumes += number_of(weft::this_coroutine::yield<void(T)>());
              }) {}
        void give(T value) { coroutine_.resume(std::move(value)); }

    private:
        weft::coroutine<void(T)> coroutine_;
    };
};

struct weft_task_value : stackless_peer {
    static constexpr const char* name = "weft.task";

    template <class T>
    class receiver {
    public:
        receiver() : task_(run(next_)) { task_.start(); }
        receiver(const receiver&) = delete;
        receiver& operator=(const receiver&) = delete;
        void give(T value) {
            next_.value.emplace(std::move(value));
            next_.waiting.resume();
        }

    private:
        struct event {
            std::coroutine_handle<> waiting{};
            std::optional<T> value{};

            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) noexcept { waiting = h; }
            T await_resume() noexcept { return *std::exchange(value, {}); }
        };
        static weft::task<> run(event& next) {
            for (;;) world.resumes += number_of(co_await next);
        }
        event next_;
        weft::task<> task_;
    };
};

}  // namespace bench
