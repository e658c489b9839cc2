// begun: a coroutine that runs from its call on, in the caller's flow, and belongs to the caller:
// its waits are beside the waits of the caller.
//
//   const weft::testing::begun b = [](weft::testing::gate& g) -> weft::testing::begun {
//       co_await g.async_pass();
//   }(g);
#pragma once

#include <coroutine>
#include <exception>

namespace weft::testing {

struct begun {
    struct promise_type {
        begun get_return_object() noexcept {
            return begun(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };

    explicit begun(std::coroutine_handle<promise_type> h) noexcept : handle(h) {}
    begun(begun&&) = delete;
    begun& operator=(begun&&) = delete;
    ~begun() { handle.destroy(); }

    std::coroutine_handle<promise_type> handle;
};

}  // namespace weft::testing
