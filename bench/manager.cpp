// The cost of a task_manager over the fibers, coroutines and timers that it manages.
//
// managed_resume: one resume of a suspended task by its id, and its turn until it suspends again,
// of 30 000 tasks in an order that is independent of their addresses, against the resume of bare
// coroutines in the same order. managed_spawn_join: a task of an empty function, from its creation
// to the return of join, on memory that was used before, against a fiber of the same function.
// managed_timeout: setting the timeout of each of a million tasks, or cancelling nine tenths of the
// timeouts, in the order of creation; the delays are spread over a minute. managed_tick: a tick of
// a millisecond with nothing due, while a million tasks have a timeout that is an hour or more
// away. managed_live: the memory of a million live tasks.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "bench/bodies.hpp"
#include "bench/harness.hpp"
#include "bench/peers/weft_coroutine.hpp"
#include "bench/peers/weft_fiber.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"

namespace bench {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr std::size_t million = 1'000'000;

std::vector<std::uint32_t> shuffled(std::size_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937 random(20240229);  // fixed: every peer and every run has the same order
    for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    return order;
}

// -- resume -------------------------------------------------------------------------------------

// Bare coroutines, resumed in place.
struct bare_coroutines {
    static constexpr const char* name = weft_coroutine::name;

    explicit bare_coroutines(std::size_t count) : stacks(stack_bytes), row(count) {
        for (std::size_t i = 0; i < count; ++i) {
            row.emplace(i, [&] { return make<weft_coroutine, plain>(stacks); });
            row[i].resume();
        }
    }
    template <class F>
    void run(F rounds) {
        rounds();
    }
    void resume_all(const std::vector<std::uint32_t>& order) {
        for (const std::uint32_t i : order) row[i].resume();
    }

    weft_coroutine::stacks stacks;
    bench::row<coroutine_of<weft_coroutine, plain>> row;
};

// Managed tasks, of either kind. A fiber resumes the tasks, as a server does when packets have
// come; the loop runs the tasks in its next turns.
template <bool IsFiber>
struct managed_tasks {
    explicit managed_tasks(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) ids.push_back(*spawn());
        loop.run_until_idle();
    }
    auto spawn() {
        if constexpr (IsFiber) {
            return manager.spawn(
                [] {
                    do {
                        world.resumes += 1;
                        weft::this_managed::suspend();
                    } while (!world.finishing);
                },
                {.stack_bytes = stack_bytes});
        } else {
            return manager.spawn([]() -> weft::task<> {
                do {
                    world.resumes += 1;
                    co_await weft::this_managed::async_suspend();
                } while (!world.finishing);
            });
        }
    }
    template <class F>
    void run(F rounds) {
        weft::fiber resumer(rounds, {.on = loop});
        loop.run_until_idle();
        resumer.join();
    }
    void resume_all(const std::vector<std::uint32_t>& order) {
        std::size_t refused = 0;
        for (const std::uint32_t i : order) refused += manager.resume(ids[i]) ? 1 : 0;
        world.resumes += refused;  // the sum is wrong then
        weft::this_fiber::yield();
    }

    weft::loop& loop = *new weft::loop;  // leaked: the process ends with the tasks alive
    weft::task_manager<>& manager = *new weft::task_manager<>({.on = loop});
    std::vector<std::uint64_t> ids;
};
struct managed_fibers : managed_tasks<true> {
    static constexpr const char* name = "weft.manager.fiber";
    using managed_tasks::managed_tasks;
};
struct managed_coroutines : managed_tasks<false> {
    static constexpr const char* name = "weft.manager.task";
    using managed_tasks::managed_tasks;
};

auto resumes(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer*, meter& m) {
        const auto order = shuffled(count);
        Peer all(count);
        all.run([&] {
            all.resume_all(order);
            m.start();
            for (std::size_t round = 0; round < rounds; ++round) all.resume_all(order);
            m.stop(count * rounds);
        });
        m.expect_equal(world.resumes, count * (rounds + 2), "resumes");
    };
}

// -- spawn and join -----------------------------------------------------------------------------

struct plain_fibers {
    static constexpr const char* name = weft_fiber::name;
    explicit plain_fibers(weft::loop& l) : loop(l) {}
    template <class F>
    void spawn_and_join(F f) {
        weft::fiber(f, {.on = loop, .stack_bytes = stack_bytes}).join();
    }
    weft::loop& loop;
};
struct managed_fibers_joined {
    static constexpr const char* name = managed_fibers::name;
    explicit managed_fibers_joined(weft::loop& l) : manager({.on = l}) {}
    template <class F>
    void spawn_and_join(F f) {
        static_cast<void>(manager.join(*manager.spawn(f, {.stack_bytes = stack_bytes})));
    }
    weft::task_manager<> manager;
};
struct managed_coroutines_joined {
    static constexpr const char* name = managed_coroutines::name;
    explicit managed_coroutines_joined(weft::loop& l) : manager({.on = l}) {}
    template <class F>
    static weft::task<> body(F f) {
        f();
        co_return;
    }
    template <class F>
    void spawn_and_join(F f) {
        static_cast<void>(manager.join(*manager.spawn(body(f))));
    }
    weft::task_manager<> manager;
};

auto spawns(std::size_t rounds) {
    return [=]<class Peer>(Peer*, meter& m) {
        weft::loop loop;
        std::size_t ran = 0;
        weft::fiber f(
            [&] {
                Peer peer(loop);
                const auto run = [&] {
                    for (std::size_t i = 0; i < rounds; ++i) peer.spawn_and_join([&ran] { ++ran; });
                };
                run();
                m.start();
                run();
                m.stop(rounds);
            },
            {.on = loop});
        loop.run();
        f.join();
        m.expect_equal(ran, 2 * rounds, "functions that ran");
    };
}

// -- time ---------------------------------------------------------------------------------------

// A million tasks that have not begun; their kind does not matter for their timeouts.
struct sleepers {
    static constexpr const char* name = "weft.manager";

    explicit sleepers(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            ids.push_back(*manager.spawn([]() -> weft::task<> { co_return; },
                                         {.launch = weft::launch::deferred}));
    }

    weft::loop& loop = *new weft::loop;
    weft::task_manager<>& manager =
        *new weft::task_manager<>({.on = loop, .start = weft::time_point(hours(1))});
    std::vector<std::uint64_t> ids;
};

auto timeouts() {
    return []<class Peer>(Peer*, meter& m) {
        Peer all(million);
        weft::task_manager<>& manager = all.manager;
        std::minstd_rand random(20240229);
        std::vector<milliseconds> delays(million);
        for (auto& d : delays) d = milliseconds(1 + random() % 60'000);
        std::size_t refused = 0;
        const auto set_all = [&] {
            for (std::size_t i = 0; i < million; ++i)
                refused += manager.set_time_limit(all.ids[i], delays[i]) ? 1 : 0;
        };
        const auto cancel_most = [&](std::size_t left) {
            for (std::size_t i = 0; i < million; ++i)
                if (i % 10 != left)
                    refused += manager.set_time_limit(all.ids[i], weft::never) ? 1 : 0;
        };
        set_all();
        for (std::size_t i = 0; i < million; ++i)
            refused += manager.set_time_limit(all.ids[i], weft::never) ? 1 : 0;
        m.start();
        set_all();
        cancel_most(3);
        m.stop(million + million / 10 * 9);
        m.expect_equal(refused, 0, "refused");
        m.expect_equal(manager.stats().deadline_count, million / 10, "timeouts that are left");
    };
}

auto ticks(std::size_t rounds) {
    return [=]<class Peer>(Peer*, meter& m) {
        Peer all(million);
        std::minstd_rand random(20240229);
        for (const std::uint64_t id : all.ids)
            all.manager.set_time_limit(id, hours(1) + milliseconds(random() % 3'600'000));
        weft::time_point now = all.manager.now();
        std::size_t ended = 0;
        m.start();
        for (std::size_t i = 0; i < rounds; ++i) ended += all.manager.tick(now += milliseconds(1));
        m.stop(rounds);
        m.expect_equal(ended, 0, "ends");
        m.expect_equal(all.manager.stats().deadline_count, million, "timeouts");
    };
}

// -- memory -------------------------------------------------------------------------------------

double resident_bytes() {
    unsigned long total = 0, resident = 0;
    std::FILE* f = std::fopen("/proc/self/statm", "r");
    if (f != nullptr) {
        if (std::fscanf(f, "%lu %lu", &total, &resident) != 2) resident = 0;
        std::fclose(f);
    }
    return static_cast<double>(resident) * 4096;
}

auto lives(std::size_t count) {
    return [=]<class Peer>(Peer*, meter& m) {
        const double before = resident_bytes();
        m.start();
        Peer all(count);
        m.stop(count);
        m.counter("bytes_per_task", (resident_bytes() - before) / static_cast<double>(count));
        m.counter("works", all.manager.live_count() == count && world.resumes == count ? 1 : 0);
    };
}

// The argument of a subject: names a peer without making one.
template <class Peer>
struct named {
    static constexpr const char* name = Peer::name;
};
template <class Subject>
auto of_named(Subject s) {
    return [s]<class Peer>(named<Peer>, meter& m) { s(static_cast<Peer*>(nullptr), m); };
}

}  // namespace

void add_manager() {
    add("managed_resume/30000",
        peers<named<managed_fibers>, named<managed_coroutines>, named<bare_coroutines>>{},
        of_named(resumes(30'000, 20)));
    add("managed_spawn_join/1",
        peers<named<managed_fibers_joined>, named<managed_coroutines_joined>,
              named<plain_fibers>>{},
        of_named(spawns(200'000)));
    add("managed_timeout/1M", peers<named<sleepers>>{}, of_named(timeouts()));
    add("managed_tick/1M", peers<named<sleepers>>{}, of_named(ticks(100'000)));
    add("managed_live/1M", peers<named<managed_coroutines>>{}, of_named(lives(million)));
}

}  // namespace bench
