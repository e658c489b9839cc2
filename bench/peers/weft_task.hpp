// weft::task, resumed as an event resumes it: by the handle that the await left behind.
#pragma once

#include <coroutine>

#include "bench/bodies.hpp"
#include "weft/task/task.hpp"

namespace bench {

struct weft_task : stackless_peer {
    static constexpr const char* name = "weft.task";

    // The object that a task awaits: keeps the waiter's handle.
    struct event {
        std::coroutine_handle<> waiting{};

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) noexcept { waiting = h; }
        void await_resume() const noexcept {}
    };

    class coroutine {
    public:
        template <class Body>
        explicit coroutine(Body body) : task_(run(event_, body)) {}
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;

        [[gnu::always_inline]] void resume() {
            if (event_.waiting)
                event_.waiting.resume();
            else
                task_.start();
        }

    private:
        template <unsigned Weight>
        static weft::task<> run(event& next, counting<Weight>) {
            do {
                world.resumes += Weight;
                co_await next;
            } while (!world.finishing);
        }
        static weft::task<> run(event& next, holding) {
            world.resumes += 1;
            counted object;
            escape(&object);
            co_await next;
        }
        static weft::task<> run(event& next, empty_handed) {
            world.resumes += 1;
            co_await next;
        }

        event event_;
        weft::task<> task_;
    };

    template <class Body>
    static coroutine make(stacks&, Body body) {
        return coroutine(body);
    }

    static weft::task<std::uint64_t> sum_of(std::uint64_t number, std::uint64_t leaves) {
        if (leaves == 1) co_return number;
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t part = leaves / 10;
            sum += co_await sum_of(number + i * part, part);
        }
        co_return sum;
    }
    static std::uint64_t skynet(stacks&) {
        auto root = sum_of(0, skynet_leaves);
        root.start();
        return root.get();
    }
};

}  // namespace bench
