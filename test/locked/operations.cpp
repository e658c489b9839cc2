// weft_locked: operations of weft on one thread, for locked_test.py, which counts their locked
// instructions by callgrind.
//
//   measured("mutex_handoff", 2, [&] { ... });     // two operations in a call
//
// Each operation is done some times before it is counted: so what it takes from a cache is there,
// and what is made once was made. Callgrind counts from the call of weft_locked_begin() to the call
// of weft_locked_end(); which part of its counts is which operation's, and where each object was
// loaded, is printed.
#include <link.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/future/promise.hpp"
#include "weft/io/detail/driver_epoll.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/timer.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/task_handle.hpp"

extern "C" {
WEFT_NOINLINE void weft_locked_begin() { asm volatile("" ::: "memory"); }
WEFT_NOINLINE void weft_locked_end() { asm volatile("" ::: "memory"); }
}

namespace {

using namespace std::chrono_literals;

constexpr int calls_before = 200;
constexpr int calls_counted = 1'000;
constexpr std::size_t stack_bytes = 64 * 1024;

template <class T>
void escape(const T& t) {
    asm volatile("" ::"r"(&t) : "memory");
}

void tell(const char* name, int operations_a_call) {
    std::printf("%s %d\n", name, operations_a_call * calls_counted);
}

template <class F>
void measured(const char* name, int operations_a_call, F f) {
    for (int i = 0; i < calls_before; ++i) f();
    weft_locked_begin();
    for (int i = 0; i < calls_counted; ++i) f();
    weft_locked_end();
    tell(name, operations_a_call);
}

// The same of a coroutine function.
template <class F>
weft::task<> measured_task(const char* name, F f) {
    for (int i = 0; i < calls_before; ++i) co_await f();
    weft_locked_begin();
    for (int i = 0; i < calls_counted; ++i) co_await f();
    weft_locked_end();
    tell(name, 1);
}

// What runs in a fiber of a loop over epoll, and beside it, if given, its partner.
template <class F, class G = void (*)()>
void in_fibers(F f, G partner = [] {}) {
    weft::loop loop(std::make_unique<weft::detail::driver_epoll>());
    weft::fiber first([&] { f(loop); }, {.on = loop});
    weft::fiber second(partner, {.on = loop});
    loop.run();
    first.join();
    second.join();
}

weft::task<> nothing() {
    escape(stack_bytes);
    co_return;
}

// -- fibers, tasks --------------------------------------------------------------------------------

void spawns() {
    in_fibers([](weft::loop& loop) {
        measured("spawn_join/fiber", 1, [&] {
            weft::fiber([] { escape(stack_bytes); }, {.on = loop, .stack_bytes = stack_bytes})
                .join();
        });
        measured("spawn_join/task", 1, [&] {
            weft::nursery n;
            n.spawn(nothing()).get();
            n.join();
        });
        measured("yield", 1, [] { weft::this_fiber::yield(); });
    });
}

void awaits() {
    weft::loop loop(std::make_unique<weft::detail::driver_epoll>());
    weft::fiber f([] { weft::await(measured_task("task_await", nothing)); }, {.on = loop});
    loop.run();
    f.join();
}

// -- awaited objects ------------------------------------------------------------------------------

void channels() {
    weft::channel<int> there(0), back(0);
    in_fibers(
        [&](weft::loop&) {
            measured("channel_pingpong", 1, [&] {
                there.send(1).value();
                escape(back.recv().value());
            });
            there.close();
        },
        [&] {
            for (const int i : there) back.send(i).value();
        });
    weft::channel<int> ring(1024);
    in_fibers(
        [&](weft::loop&) {
            measured("channel_1p1c/1024", 64, [&] {
                for (int i = 0; i < 64; ++i) ring.send(i).value();
            });
            ring.close();
        },
        [&] {
            for (const int i : ring) escape(i);
        });
}

void mutexes() {
    weft::mutex m;
    bool over = false;
    const auto take_turn = [&] {
        m.lock();
        weft::this_fiber::yield();
        m.unlock();
        weft::this_fiber::yield();
    };
    in_fibers(
        [&](weft::loop&) {
            measured("mutex_handoff", 2, take_turn);
            over = true;
        },
        [&] {
            while (!over) take_turn();
        });
}

void events() {
    weft::auto_reset_event there, back;
    bool over = false;
    in_fibers(
        [&](weft::loop&) {
            const auto ask = [&] {
                there.set();
                back.wait();
            };
            measured("event_set_and_wait", 2, ask);
            measured("event_set_and_wait_limit", 2, [&] {
                there.set();
                escape(back.wait(1h));
            });
            over = true;
            there.set();
        },
        [&] {
            do {
                there.wait();
                back.set();
            } while (!over);
        });
}

void timers() {
    in_fibers([](weft::loop& loop) {
        measured("timer_add_and_cancel", 1, [&] { weft::timer(loop, 1h, [] {}).stop(); });
    });
}

void futures() {
    in_fibers([](weft::loop& loop) {
        measured("future_then", 1, [&] {
            weft::promise<int> p(loop);
            weft::future<int> f = p.get_future().then([](int n) { return n + 1; });
            p.set_value(1);
            escape(f.get());
        });
        measured("future_then_plain", 1, [&] {
            weft::promise<int> p(loop);
            weft::future<int> f = p.get_future().then(weft::plain, [](int n) { return n + 1; });
            p.set_value(1);
            escape(f.get());
        });
    });
}

void sockets() {
    auto [here, there] = weft::unix_stream::pair().value();
    weft::unix_stream &first = here, &second = there;
    std::array<std::byte, 8> question{}, seen{};
    in_fibers(
        [&](weft::loop&) {
            measured("socket_read", 2, [&] {
                escape(first.write_all(question));
                escape(first.read(question).value());
            });
            first.close();
        },
        [&] {
            while (second.read(seen).value_or(0) != 0) escape(second.write_all(seen));
        });
}

// -- managed tasks --------------------------------------------------------------------------------

void managed_spawns() {
    in_fibers([](weft::loop& loop) {
        weft::task_manager<> manager({.on = loop});
        measured("managed_spawn_join/fiber", 1, [&] {
            const auto id =
                manager.spawn([] { escape(stack_bytes); }, {.stack_bytes = stack_bytes});
            escape(manager.join(*id));
        });
        measured("managed_spawn_join/task", 1, [&] {
            const auto id = manager.spawn(nothing());
            escape(manager.join(*id));
        });
    });
}

void managed_resumes() {
    in_fibers([](weft::loop& loop) {
        weft::task_manager<> manager({.on = loop});
        const auto of = [&](const char* name, std::uint64_t id) {
            weft::this_fiber::yield();
            measured(name, 1, [&] {
                manager.resume(id);
                weft::this_fiber::yield();
            });
        };
        of("managed_resume/fiber", *manager.spawn([] {
            for (;;) weft::this_managed::suspend();
        }));
        of("managed_resume/task", *manager.spawn([]() -> weft::task<> {
            for (;;) co_await weft::this_managed::async_suspend();
        }));
    });
}

}  // namespace

int main() {
    // A server has more threads than one, and libraries may do without locks where there is one.
    std::thread([] {}).join();
    spawns();
    awaits();
    channels();
    mutexes();
    events();
    timers();
    futures();
    sockets();
    managed_spawns();
    managed_resumes();
}
