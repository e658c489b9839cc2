// A hand-written lazy C++20 task with a value, as small as possible. Memory decides the source of
// the frame: it has operator new and delete of the promise.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace bench {

template <class Memory>
class std_task {
public:
    struct promise_type : Memory {
        std::coroutine_handle<> awaiting = std::noop_coroutine();
        std::uint64_t value = 0;

        struct back_to_awaiting {
            bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
                return h.promise().awaiting;
            }
            void await_resume() noexcept {}
        };
        std_task get_return_object() {
            return std_task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        back_to_awaiting final_suspend() noexcept { return {}; }
        void return_value(std::uint64_t v) { value = v; }
        void unhandled_exception() { std::terminate(); }
    };

    std_task(const std_task&) = delete;
    std_task& operator=(const std_task&) = delete;
    ~std_task() { frame_.destroy(); }

    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
        frame_.promise().awaiting = awaiting;
        return frame_;
    }
    std::uint64_t await_resume() noexcept { return frame_.promise().value; }

    std::uint64_t run() {
        frame_.resume();
        return frame_.promise().value;
    }

private:
    explicit std_task(std::coroutine_handle<promise_type> h) : frame_(h) {}
    std::coroutine_handle<promise_type> frame_;
};

}  // namespace bench
