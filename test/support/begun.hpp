// begun: a coroutine that runs from its call on, in the caller's flow, and belongs to the caller:
// its waits are beside the waits of the caller.
//
//   const weft::testing::begun b = [](weft::testing::gate& g) -> weft::testing::begun {
//       co_await g.async_pass();
//   }(g);
#pragma once

#include <coroutine>
#include <exception>

#include "test/support/gate.hpp"

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

// Passes both, one after the other; `passed`: once it has passed the second as it should.
inline begun pass_both(gate& first, gate& second, bool* passed = nullptr) {
    co_await first.async_pass();
    const wait_status how = co_await second.async_pass_until(never);
    if (passed != nullptr) *passed = how == wait_status::woken;
}

}  // namespace weft::testing
