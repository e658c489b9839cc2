// "What happens when...": a case for each row that is about fibers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/support/counted.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/io/signal_set.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/from_callback.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::loop_thread;
using testing::virtual_loop;

using testing::counted;

TEST(misuse, destroy_never_started) {
    loop l;
    int destroyed = 0;
    int ran = 0;
    {
        auto c = std::make_shared<counted>(destroyed);
        fiber f([&ran, c = std::move(c)] { ++ran; }, {.on = l, .launch = launch::deferred});
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(ran, 0);
}

TEST(misuse, destroy_suspended) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            fiber inner([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            });
            this_fiber::sleep_for(1ms);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(l.now(), time_point(1ms));
    outer.join();
}

TEST(misuse_death, destroy_running_itself_is_a_join_of_itself) {
    const auto joins_itself = [] {
        virtual_loop l(1);
        fiber f;
        f = fiber([&] { f.join(); }, {.name = "ouroboros", .on = l});
        l.run();
    };
    EXPECT_DEATH(joins_itself(), "weft: a fiber joins itself: fiber [0-9]+ \"ouroboros\"");
}

TEST(misuse, destroy_running_from_another_thread) {
    loop_thread there;
    std::atomic<bool> running{false};
    std::atomic<bool> ended{false};
    {
        fiber f(
            [&] {
                struct at_end {
                    std::atomic<bool>& e;
                    ~at_end() { e = true; }
                } const a{ended};
                running = true;
                for (;;) this_fiber::yield();
            },
            {.on = there});
        while (!running) std::this_thread::yield();
    }
    EXPECT_TRUE(ended);
}

TEST(misuse, fiber_object_dropped_without_join) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            fiber([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            });
            fiber([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1ms);
            }).detach();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(destroyed, 2);
    EXPECT_EQ(l.now(), time_point(1ms));
    outer.join();
}

TEST(misuse_death, uncaught_exception_in_a_fiber) {
    const auto uncaught = [] {
        virtual_loop l(1);
        fiber([] { throw std::runtime_error("no route"); }, {.name = "login", .on = l}).detach();
        l.run();
    };
    EXPECT_DEATH(uncaught(),
                 "weft: what\\(\\): no route\n"
                 "weft: an exception left a fiber that is not joined: "
                 "fiber [0-9]+ \"login\"");
}

TEST(misuse, resume_from_another_thread) {
    loop_thread home;
    std::thread::id before, after;
    loop_thread elsewhere;
    fiber f(
        [&] {
            before = std::this_thread::get_id();
            fiber far([] { this_fiber::yield(); }, {.on = elsewhere});
            far.join();
            after = std::this_thread::get_id();
        },
        {.on = home});
    f.join();
    EXPECT_EQ(before, after) << "it goes on on its own thread, whoever wakes it";
}

TEST(misuse, switch_inside_catch) {
    loop l;
    int right = 0;
    const auto body = [&](int mine) {
        try {
            throw mine;
        } catch (int) {
            this_fiber::yield();
            try {
                throw;
            } catch (int again) {
                right += again == mine;
            }
        }
    };
    fiber a([&] { body(1); }, {.on = l});
    fiber b([&] { body(2); }, {.on = l});
    l.run();
    a.join();
    b.join();
    EXPECT_EQ(right, 2);
}

TEST(misuse, switch_while_unwinding) {
    loop l;
    int right = 0;
    const auto body = [&](int mine) {
        struct waits {
            int& right;
            ~waits() {
                const int before = std::uncaught_exceptions();
                this_fiber::yield();
                right += before == 1 && std::uncaught_exceptions() == before;
            }
        };
        try {
            const waits w{right};
            throw mine;
        } catch (int again) {
            right += again == mine && std::uncaught_exceptions() == 0;
        }
    };
    fiber a([&] { body(1); }, {.on = l});
    fiber b([&] { body(2); }, {.on = l});
    l.run();
    a.join();
    b.join();
    EXPECT_EQ(right, 4);
}

// A handler may do nothing with weft but what it may do anyway; the waiter for the signal runs in a
// turn like any other, between those of others.
TEST(misuse, signal_handler_context) {
    loop l;
    std::vector<std::string> order;
    auto signals = signal_set::open({SIGUSR1});
    ASSERT_TRUE(signals);
    fiber waits(
        [&] {
            const result<signal_info> s = signals->wait();
            ASSERT_TRUE(s);
            EXPECT_EQ(s->number, SIGUSR1);
            mutex m;  // all that a turn may do
            const std::lock_guard held(m);
            order.emplace_back("told");
        },
        {.on = l});
    fiber sends(
        [&] {
            this_fiber::yield();  // the other waits
            ::kill(::getpid(), SIGUSR1);
            order.emplace_back("sent");
            waits.join();
        },
        {.on = l});
    l.run();
    sends.join();
    EXPECT_EQ(order, (std::vector<std::string>{"sent", "told"}));
}

TEST(misuse, blocking_call_in_a_worker) {
    static std::atomic<int> reports;
    reports = 0;
    pool p({.thread_count = 1, .stall_threshold = 5ms, .on_stall = [](const stall_info& t) {
                reports += std::string_view(t.name) == "blocks";
            }});
    fiber f(
        [] {
            while (reports == 0) std::this_thread::yield();
        },
        {.name = "blocks", .on = p});
    f.join();
    EXPECT_EQ(reports, 1);
}

TEST(misuse, loop_destroyed_with_live_work) {
    int destroyed = 0;
    fiber f;
    {
        loop l;
        f = fiber(
            [&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            },
            {.on = l});
        l.run_until_idle();
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(f.join().reason(), stop_reason::shutdown);
}

TEST(misuse, timer_with_huge_or_negative_durations) {
    virtual_loop l(1);
    fiber f(
        [&] {
            this_fiber::sleep_for(std::chrono::hours::min());
            this_fiber::sleep_until(time_point::min());
            EXPECT_EQ(l.now(), time_point{});
            fiber huge([] { this_fiber::sleep_for(std::chrono::hours::max()); });
            this_fiber::sleep_for(24h * 36500);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point(24h * 36500));
    f.join();
}

TEST(misuse_death, fiber_made_outside_of_any_executor) {
    EXPECT_DEATH(
        fiber([] {}),
        "weft: a fiber is made outside of any executor: wrap it in weft::run, or name one: "
        "..on = loop.*misuse_test.cpp");
}

TEST(misuse_death, join_of_an_object_without_a_fiber) {
    fiber f;
    EXPECT_DEATH(f.join(), "weft: join of a fiber object that has no fiber.*misuse_test.cpp");
    EXPECT_DEATH(f.detach(), "weft: join of a fiber object that has no fiber");
}

TEST(misuse_death, second_start_of_a_fiber) {
    loop l;
    EXPECT_DEATH(
        {
            fiber f([] {}, {.name = "login", .on = l, .launch = launch::deferred});
            f.start();
            f.start();
        },
        "weft: second start of a fiber.*login.*misuse_test.cpp");
    EXPECT_DEATH(fiber([] {}, {.on = l}).start(), "weft: second start of a fiber");
}

TEST(misuse_death, yield_outside_of_any_fiber) {
    EXPECT_DEATH(this_fiber::yield(), "weft: a call of this_fiber outside of any fiber");
}

TEST(misuse, wait_within_a_coroutine_that_a_fiber_resumed) {
    virtual_loop l(1);
    fiber f(
        [] {
            coroutine<> c([] { this_fiber::sleep_for(1h); });
            c.resume();
            EXPECT_TRUE(c.done());
        },
        {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point(1h)) << "the fiber waits, with all that it resumed";
    f.join();
}

TEST(misuse_death, yield_of_a_coroutine_in_a_fiber) {
    const auto yields = [] {
        loop l;
        fiber f([] { this_coroutine::yield(); }, {.name = "lost", .on = l});
        l.run();
    };
    const char* const message =
        "weft: a fiber suspended without a wait: use this_fiber::yield: fiber [0-9]+ \"lost\"";
    EXPECT_DEATH(yields(), message);
    const auto switches = [] {
        loop l;
        coroutine<> other([] {});
        fiber f([&] { other.switch_to(); }, {.name = "lost", .on = l});
        l.run();
    };
    EXPECT_DEATH(switches(), message);
}

TEST(misuse_death, two_joins_of_one_fiber_object) {
    const auto joined_twice = [] {
        virtual_loop l(1);
        fiber f([] { this_fiber::sleep_for(1ms); }, {.on = l});
        fiber a([&] { f.join(); }, {.on = l});
        fiber b([&] { f.join(); }, {.on = l});
        l.run();
    };
    EXPECT_DEATH(joined_twice(), "weft: a fiber is joined twice.*misuse_test.cpp");
}

TEST(misuse_death, message_names_the_calling_line_also_for_awaited_calls) {
    const auto joined_twice = [] {
        virtual_loop l(1);
        fiber f([] { this_fiber::sleep_for(1ms); }, {.on = l});
        fiber a([&] { await(f.async_join()); }, {.on = l});
        fiber b([&] { await(f.async_join()); }, {.on = l});
        l.run();
    };
    EXPECT_DEATH(joined_twice(), "weft: a fiber is joined twice.*misuse_test.cpp");
    const auto got_twice = [] {
        virtual_loop l(1);
        auto h = spawn([] { return this_fiber::sleep_for(1ms), 1; }, {.on = l});
        fiber a([&] { await(h.async_get()); }, {.on = l});
        fiber b([&] { await(h.async_get()); }, {.on = l});
        l.run();
    };
    EXPECT_DEATH(got_twice(), "weft: a fiber is joined twice.*misuse_test.cpp");
    EXPECT_DEATH(this_fiber::set_name("x"),
                 "weft: a call of this_fiber outside of any fiber.*misuse_test.cpp");
}

TEST(misuse_death, blocking_wait_in_what_a_loop_runs_outside_of_any_fiber) {
    const auto blocks = [] {
        loop l;
        l.post([] { this_fiber::sleep_for(1h); });
        l.run();
    };
    EXPECT_DEATH(blocks(), "weft: a blocking wait in what an executor runs outside of any fiber");
}

// -- rows of the table that have their tests elsewhere, by the row's name ------------------------

TEST(misuse_death, double_resume) {
    coroutine<> c;
    c = coroutine<>([&] { c.resume(); }, {.name = "login"});
    EXPECT_DEATH(c.resume(), "weft: resume of a running coroutine: coroutine [0-9]+ \"login\"");
    coroutine<> again;
    again = coroutine<>([&] { EXPECT_FALSE(again.try_resume()); });
    again.resume();
    EXPECT_TRUE(again.done());
}

TEST(misuse_death, resume_after_finish) {
    coroutine<> c([] {}, {.name = "login"});
    c.resume();
    EXPECT_FALSE(c.try_resume());
    EXPECT_DEATH(c.resume(), "weft: resume of a finished coroutine: coroutine [0-9]+ \"login\"");
}

TEST(misuse, uncaught_in_a_low_level_coroutine) {
    coroutine<> c([] { throw 5; });
    EXPECT_THROW(c.resume(), int);
    EXPECT_TRUE(c.done());
}

TEST(misuse, double_wake) {
    virtual_loop l(1);
    fiber f(
        [] {
            const result<int> got = await(from_callback<int>([](completion<int> done) {
                EXPECT_TRUE(done(1)) << "before the suspension: remembered";
                EXPECT_FALSE(done(2));
            }));
            EXPECT_EQ(got.value(), 1);
        },
        {.on = l});
    l.run();
    f.join();
}

#if !WEFT_TEST_ASAN && !WEFT_TEST_TSAN  // which report it themselves
[[gnu::noinline]] int recursion(int n) {
    volatile char frame[512];
    frame[0] = static_cast<char>(n);
    return (n == 1'000'000 ? 0 : recursion(n + 1)) + frame[0];
}
TEST(misuse_death, stack_overflow) {
    const auto overflows = [] {
        virtual_loop l(1);
        fiber f([] { recursion(0); }, {.name = "login", .on = l, .stack_bytes = 64 * 1024});
        l.run();
    };
    EXPECT_EXIT(overflows(), ::testing::KilledBySignal(SIGSEGV),
                "weft: stack overflow in coroutine [0-9]+ \"login\" \\(64 KiB stack");
}
#endif

TEST(misuse, stack_memory_exhausted) {
    struct none_left {
        stack acquire() noexcept { return {}; }
        void release(stack) noexcept {}
        std::size_t stack_bytes() const noexcept { return 16384; }
    };
    virtual_loop l(1);
    none_left source;
    int ran = 0;
    fiber f([&] { ++ran; }, {.on = l, .stack = stack_allocator_ref(source)});
    l.run();
    EXPECT_THROW(f.join(), std::bad_alloc);
    EXPECT_EQ(ran, 0);
}

template <class T>
struct no_memory {
    using value_type = T;
    no_memory() = default;
    template <class U>
    explicit no_memory(const no_memory<U>&) noexcept {}
    [[noreturn]] T* allocate(std::size_t) { throw std::bad_alloc(); }
    void deallocate(T*, std::size_t) noexcept {}
    bool operator==(const no_memory&) const = default;
};
TEST(misuse, frame_allocation_fails) {
    struct body {
        static task<> run(std::allocator_arg_t, no_memory<std::byte>, std::shared_ptr<int>) {
            co_return;
        }
    };
    const auto parameter = std::make_shared<int>(1);
    auto* volatile run = &body::run;  // Clang omits the frame where it can prove that it may
    EXPECT_THROW(static_cast<void>(run(std::allocator_arg, {}, parameter)), std::bad_alloc);
    EXPECT_EQ(parameter.use_count(), 1);
}

TEST(misuse_death, mutex_owner_dies) {
    const auto ends_and_holds_it = [] {
        virtual_loop l(1);
        mutex m;
        fiber f([&] { m.lock(); }, {.name = "alice", .on = l});
        l.run();
    };
    EXPECT_DEATH(ends_and_holds_it(),
                 "weft: a fiber ended and holds a mutex: fiber [0-9]+ \"alice\"");
}

TEST(misuse_death, mutex_unlock_by_other) {
    const auto unlocks = [] {
        virtual_loop l(1);
        mutex m;
        fiber a([&] { m.lock(), this_fiber::sleep_for(1h); }, {.name = "alice", .on = l});
        fiber b([&] { this_fiber::sleep_for(1ms), m.unlock(); }, {.name = "bob", .on = l});
        l.run();
    };
    EXPECT_DEATH(
        unlocks(),
        "unlock of a mutex, which is held by fiber [0-9]+ \"alice\": fiber [0-9]+ \"bob\"");
}

TEST(misuse_death, fork_in_a_running_runtime) {
    const auto forks = [] {
        loop l;
        fiber f(
            [] {
                const pid_t child = ::fork();
                int how = 0;
                if (child != 0) {
                    ::waitpid(child, &how, 0);
                    std::_Exit(WIFSIGNALED(how) ? 3 : 4);
                }
                this_fiber::sleep_for(1ms);
            },
            {.on = l});
        l.run();
        std::_Exit(5);
    };
    EXPECT_EXIT(forks(), ::testing::ExitedWithCode(3), "weft: a loop goes on in a forked process");
}

// Only what cannot be set decides; and a day that passes at once wakes all in their order.
TEST(misuse, clock_jumps) {
    static_assert(weft::clock::is_steady);
    virtual_loop l(1);
    std::vector<int> woken;
    const auto sleeps = [&](int hours) {
        this_fiber::sleep_for(std::chrono::hours(hours));
        woken.push_back(hours);
    };
    fiber a([&] { sleeps(2); }, {.on = l});
    fiber b([&] { sleeps(1); }, {.on = l});
    fiber c([&] { sleeps(24 * 365); }, {.on = l});
    l.run();
    EXPECT_EQ(woken, (std::vector{1, 2, 24 * 365}));
    a.join(), b.join(), c.join();
}

}  // namespace
}  // namespace weft
