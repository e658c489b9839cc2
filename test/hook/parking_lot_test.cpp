#include "weft/hook/detail/parking_lot.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/support/begun.hpp"
#include "test/support/gate.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/loop.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using hook::park;
using hook::parking;
using hook::unpark;
using hook::unparked;

constexpr auto always = [] { return true; };

void until_parked(const void* address) {
    while (!hook::has_parked(address))
        current_flow() != nullptr ? this_fiber::yield() : std::this_thread::yield();
}

TEST(parking_lot, queues_fibers_and_threads_in_order_of_arrival) {
    int thing = 0;
    std::atomic<int> woken{0};
    std::atomic<int> places[4] = {};
    std::thread thread;
    run([&] {
        nursery n;
        const auto wait = [&](int i) {
            EXPECT_EQ(park(&thing, {.what = "a thing"}, always), unparked::woken);
            places[i] = ++woken;
        };
        n.spawn([&] { wait(0); });
        until_parked(&thing);
        thread = std::thread([&] { wait(1); });
        std::this_thread::sleep_for(20ms);
        n.spawn([&] { wait(2); });
        this_fiber::yield();
        for (int i = 1; i <= 3; ++i) {
            EXPECT_EQ(unpark(&thing, 1), 1u);
            while (woken != i) this_fiber::yield();
        }
        EXPECT_EQ(unpark(&thing, 1), 0u);
        n.join();
    });
    thread.join();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(places[i], i + 1);
}

TEST(parking_lot, checks_under_the_lock_whether_to_wait) {
    int thing = 0;
    EXPECT_EQ(park(&thing, {.what = "a thing"}, [] { return false; }), unparked::refused);
    run([&] {
        EXPECT_EQ(park(&thing, {.what = "a thing"}, [] { return false; }), unparked::refused);
    });
    EXPECT_FALSE(hook::has_parked(&thing));
}

TEST(parking_lot, ends_a_wait_at_its_deadline) {
    int thing = 0;
    const auto wait = [&] {
        const time_point end = after(now(), 10ms);
        EXPECT_EQ(park(&thing, {.what = "a thing", .deadline = end}, always), unparked::timed_out);
        EXPECT_GE(now(), end);
        EXPECT_EQ(park(&thing, {.what = "a thing", .deadline = time_point::min()}, always),
                  unparked::timed_out);
    };
    wait();
    run(wait);
    EXPECT_FALSE(hook::has_parked(&thing));
}

TEST(parking_lot, ends_a_wait_by_a_stop_unless_disabled) {
    int thing = 0;
    run([&] {
        fiber stopped([&] {
            EXPECT_EQ(park(&thing, {.what = "a thing"}, always), unparked::stopped);
            EXPECT_EQ(park(&thing, {.what = "a thing"}, always), unparked::stopped);
        });
        fiber stays([&] {
            EXPECT_EQ(park(&thing, {.what = "a thing", .is_stopped = false}, always),
                      unparked::woken);
        });
        this_fiber::yield();
        stopped.request_stop();
        stays.request_stop();
        stopped.join();
        EXPECT_TRUE(hook::has_parked(&thing));
        EXPECT_EQ(unpark(&thing, 9), 1u);
        stays.join();
    });
}

TEST(parking_lot, wakes_waiters_whose_bits_match) {
    int thing = 0;
    run([&] {
        std::string order;
        nursery n;
        for (const std::uint32_t b : {1u, 2u, 3u})
            n.spawn([&, b] {
                EXPECT_EQ(park(&thing, {.what = "a thing", .bits = b}, always), unparked::woken);
                order += static_cast<char>('0' + b);
            });
        this_fiber::yield();
        std::optional<bool> others;
        EXPECT_EQ(unpark(&thing, 9, 2, [&](std::size_t, bool more) { others = more; }), 2u);
        EXPECT_EQ(others, true);
        this_fiber::yield();
        EXPECT_EQ(order, "23");
        EXPECT_EQ(unpark(&thing, 9, 4), 0u);
        EXPECT_EQ(unpark(&thing, 9, 1, [&](std::size_t, bool more) { others = more; }), 1u);
        EXPECT_EQ(others, false);
        n.join();
    });
}

TEST(parking_lot, passes_ownership_to_the_first_waiter_and_reports_it) {
    int thing = 0;
    run([&] {
        nursery n;
        n.spawn([&] {
            EXPECT_EQ(park(&thing, {.what = "a thing", .tag = 7}, always), unparked::woken);
        });
        this_fiber::yield();
        n.spawn([&] {
            EXPECT_EQ(park(&thing, {.what = "a thing", .first = true, .tag = 8}, always),
                      unparked::given);
        });
        this_fiber::yield();
        EXPECT_TRUE(hook::unpark_first(&thing, [](const hook::parked* p, bool others) {
            EXPECT_TRUE(others);
            return p->tag == 8;
        }));
        EXPECT_TRUE(hook::unpark_first(&thing, [](const hook::parked* p, bool others) {
            EXPECT_FALSE(others);
            return p->tag == 8;
        }));
        EXPECT_FALSE(hook::unpark_first(&thing, [](const hook::parked* p, bool) {
            EXPECT_EQ(p, nullptr);
            return true;
        }));
        n.join();
    });
}

std::atomic<int> abandoned_given{-1};

// It is ended as a loop ends it, between its wake and its turn.
TEST(parking_lot, reports_an_unparked_waiter_that_never_resumes) {
    int thing = 0;
    for (const bool given : {false, true}) {
        abandoned_given = -1;
        loop l;
        flow* parked_flow = nullptr;
        fiber f(
            [&] {
                parked_flow = current_flow();
                const auto tell = [](const void*, bool g) noexcept { abandoned_given = g; };
                static_cast<void>(park(&thing, {.what = "a thing", .abandoned = tell}, always));
                ADD_FAILURE() << "it is killed";
            },
            {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        EXPECT_TRUE(hook::unpark_first(&thing, [&](const hook::parked*, bool) { return given; }));
        EXPECT_EQ(abandoned_given, -1);
        {
            const detail::restore_on_exit put_back;
            detail::this_thread_runs() = {nullptr, &l};
            parked_flow->kind->end(*parked_flow);
        }
        EXPECT_EQ(abandoned_given, given ? 1 : 0);
        f.detach();
    }
}

// The wait of a coroutine that the fiber has started and does not await is no wait of the fiber.
TEST(parking_lot, suspends_a_fiber_in_which_a_coroutine_waits) {
    run([] {
        int thing = 0;
        weft::testing::gate g;
        const weft::testing::begun waits = [](weft::testing::gate& of) -> weft::testing::begun {
            co_await of.async_pass();
        }(g);
        fiber other([&] {
            until_parked(&thing);
            unpark(&thing, 1);
        });
        EXPECT_EQ(park(&thing, {.what = "a thing", .deadline = after(now(), 2s)}, always),
                  unparked::woken);
        EXPECT_TRUE(g.let_one_pass());
        other.join();
    });
}

TEST(parking_lot, preserves_errno) {
    int thing = 0;
    const auto wait = [&] {
        errno = EDOM;
        EXPECT_EQ(park(&thing, {.what = "a thing", .deadline = after(now(), 1ms)}, always),
                  unparked::timed_out);
        EXPECT_EQ(errno, EDOM);
    };
    wait();
    run(wait);
}

TEST(parking_lot, wakes_waiters_on_a_shared_stack) {
    static int thing = 0;
    run([] {
        shared_stack_group group;
        const auto wait = [] {
            EXPECT_EQ(park(&thing, {.what = "a thing"}, always), unparked::woken);
        };
        fiber a(wait, {.shared = &group});
        fiber b(wait, {.shared = &group});
        std::size_t woken = 0;
        while (woken < 2) woken += unpark(&thing, 2), this_fiber::yield();
        a.join();
        b.join();
    });
}

// 20 000 waits each, and none is lost.
TEST(parking_lot, loses_no_waiter_between_loops_and_threads) {
    constexpr int parties = 4;
    constexpr int rounds = 5'000;
    std::atomic<int> permits{0};
    std::atomic<int> taken{0};
    const auto take = [&] {
        for (int i = 0; i < rounds; ++i) {
            for (;;) {
                int n = permits.load();
                if (n > 0 && permits.compare_exchange_weak(n, n - 1)) break;
                if (n <= 0)
                    static_cast<void>(
                        park(&permits, {.what = "a permit"}, [&] { return permits.load() <= 0; }));
            }
            ++taken;
        }
    };
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        run([&] {
            nursery n;
            for (int i = 0; i < parties; ++i) n.spawn(take);
            n.join();
        });
    });
    threads.emplace_back(take);
    for (int i = 0; i < (parties + 1) * rounds; ++i) {
        ++permits;
        unpark(&permits, 1);
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(taken, (parties + 1) * rounds);
    EXPECT_FALSE(hook::has_parked(&permits));
}

TEST(parking_lot, is_empty_in_a_forked_child) {
    static int thing = 0;
    run([&] {
        fiber f([] { EXPECT_EQ(park(&thing, {.what = "a thing"}, always), unparked::woken); });
        this_fiber::yield();
        const ::pid_t child = ::fork();
        if (child == 0) ::_exit(hook::has_parked(&thing) || unpark(&thing, 1) != 0 ? 1 : 0);
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(unpark(&thing, 1), 1u);
        f.join();
    });
}

}  // namespace
