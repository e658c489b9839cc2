// Hand-written C++20 coroutines, as small as possible: the frame comes from operator new, resume is
// the handle's, an awaited child transfers symmetrically.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "bench/bodies.hpp"
#include "bench/harness.hpp"
#include "bench/peers/std_task.hpp"

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

    // The frame comes from the global operator new.
    struct global_memory {};
    using summing = std_task<global_memory>;

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
