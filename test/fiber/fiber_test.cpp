#include "weft/fiber/fiber.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/support/counted.hpp"
#include "test/support/loop_thread.hpp"
#include "test/support/slow.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/stop/stop_callback.hpp"
#include "weft/wait/context_local.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::loop_thread;
using testing::virtual_loop;
using ints = std::vector<int>;

using testing::counted;

// What on_unhandled() was called with.
struct unhandled_seen {
    static inline std::atomic<int> calls;
    static inline std::string name;

    unhandled_seen() {
        calls = 0;
        before_ = on_unhandled([](std::exception_ptr, agent_info who) {
            name = who.name != nullptr ? who.name : "";
            ++calls;
        });
    }
    ~unhandled_seen() { on_unhandled(before_); }

private:
    unhandled_handler before_;
};

// -- launch -----------------------------------------------------------------------------------

TEST(fiber, posted_runs_after_the_current_turn) {
    loop l;
    ints seen;
    fiber outer(
        [&] {
            fiber inner([&] { seen.push_back(2); });
            seen.push_back(1);
            inner.join();
        },
        {.on = l});
    EXPECT_EQ(seen, ints{});
    l.run();
    EXPECT_EQ(seen, (ints{1, 2}));
    outer.join();
}

TEST(fiber, dispatched_runs_at_once_until_it_waits) {
    loop l;
    ints seen;
    fiber outer(
        [&] {
            fiber inner(
                [&] {
                    seen.push_back(1);
                    this_fiber::yield();
                    seen.push_back(3);
                    this_fiber::sleep_for(1ms);
                    seen.push_back(4);
                },
                {.launch = launch::dispatch});
            seen.push_back(2);
            inner.join();
            fiber([&] { seen.push_back(5); }, {.launch = launch::dispatch}).detach();
            seen.push_back(6);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen, (ints{1, 2, 3, 4, 5, 6}));
    outer.join();
}

TEST(fiber, dispatched_from_outside_its_loop_is_posted) {
    loop l;
    int ran = 0;
    fiber f([&] { ++ran; }, {.on = l, .launch = launch::dispatch});
    EXPECT_EQ(ran, 0);
    l.run();
    EXPECT_EQ(ran, 1);
    f.join();
}

TEST(fiber, deferred_runs_when_joined_or_started) {
    loop l;
    int ran = 0;
    fiber outer(
        [&] {
            fiber a([&] { ++ran; }, {.launch = launch::deferred});
            fiber b([&] { ++ran; }, {.launch = launch::deferred});
            this_fiber::yield();
            EXPECT_EQ(ran, 0);
            a.join();
            EXPECT_EQ(ran, 1);
            b.start();
            this_fiber::yield();
            EXPECT_EQ(ran, 2);
        },
        {.on = l});
    l.run();
    outer.join();
}

TEST(fiber, deferred_runs_when_detached) {
    loop l;
    int ran = 0;
    fiber([&] { ++ran; }, {.on = l, .launch = launch::deferred}).detach();
    l.run();
    EXPECT_EQ(ran, 1);
}

// -- join -------------------------------------------------------------------------------------

TEST(fiber, is_joined_by_a_fiber_of_its_loop) {
    virtual_loop l(1);
    ints seen;
    fiber outer(
        [&] {
            fiber inner([&] {
                this_fiber::sleep_for(1ms);
                seen.push_back(1);
            });
            EXPECT_FALSE(inner.join().is_stopped());
            EXPECT_FALSE(inner.joinable());
            seen.push_back(2);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen, (ints{1, 2}));
    outer.join();
}

TEST(fiber, is_joined_by_a_thread) {
    loop_thread there;
    for (int i = 0; i < 200; ++i) {
        int ran = 0;
        fiber f(
            [&] {
                if (i % 2 == 0) this_fiber::yield();
                ran = 1;
            },
            {.on = there});
        f.join();
        EXPECT_EQ(ran, 1);
    }
}

TEST(fiber, is_joined_by_a_fiber_of_another_thread) {
    loop_thread a;
    loop_thread b;
    int total = 0;
    fiber outer(
        [&] {
            for (int i = 0; i < 200; ++i) {
                fiber inner([&] { ++total; }, {.on = b});
                inner.join();
                EXPECT_TRUE(a.loop().running_in_this_thread());
            }
        },
        {.on = a});
    outer.join();
    EXPECT_EQ(total, 200);
}

TEST(fiber, join_rethrows_what_the_function_throws) {
    virtual_loop l(1);
    fiber outer(
        [] {
            fiber inner([] {
                this_fiber::yield();
                throw std::out_of_range("far");
            });
            EXPECT_THROW(inner.join(), std::out_of_range);
            EXPECT_FALSE(inner.joinable());
        },
        {.on = l});
    l.run();
    outer.join();

    fiber ended([] { throw 7; }, {.on = l});
    l.run();
    EXPECT_TRUE(ended.done());
    EXPECT_THROW(ended.join(), int);
}

TEST(fiber, stays_joinable_when_the_joiner_is_stopped) {
    virtual_loop l(1);
    bool ended = false;
    fiber inner(
        [&] {
            this_fiber::sleep_for(1h);
            ended = true;
        },
        {.on = l});
    fiber outer(
        [&] {
            EXPECT_THROW(inner.join(), stopped);
            EXPECT_TRUE(inner.joinable());
        },
        {.on = l});
    fiber stopper([&] { outer.request_stop(); }, {.on = l});
    l.run();
    EXPECT_TRUE(ended);
    EXPECT_FALSE(outer.join().is_stopped()) << "it caught it";
    inner.join();
    stopper.join();
}

TEST(fiber, destructor_requests_stop_and_joins) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            {
                fiber inner([&] {
                    counted c{destroyed};
                    this_fiber::sleep_for(1h);
                });
                this_fiber::yield();
            }
            EXPECT_EQ(destroyed, 1);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point{});
    outer.join();
}

TEST(fiber, destructor_joins_even_in_a_stopped_fiber) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            fiber inner([&] {
                counted c{destroyed};
                shield s;
                this_fiber::sleep_for(1h);
            });
            this_fiber::sleep_for(2h);
        },
        {.on = l});
    fiber stopper([&] { outer.request_stop(); }, {.on = l});
    l.run();
    EXPECT_EQ(destroyed, 1);
    EXPECT_TRUE(outer.join().is_stopped());
    stopper.join();
}

TEST(fiber, assignment_stops_and_joins_the_previous_fiber) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber outer(
        [&] {
            fiber f([&] {
                counted c{destroyed};
                this_fiber::sleep_for(1h);
            });
            this_fiber::yield();
            f = fiber([] {});
            EXPECT_EQ(destroyed, 1);
            f.join();
        },
        {.on = l});
    l.run();
    outer.join();
}

TEST(fiber, deferred_can_outlive_its_executor_if_never_started) {
    auto kept = std::make_shared<int>();
    {
        auto l = std::make_unique<loop>();
        fiber f([kept] { ++*kept; }, {.on = *l, .launch = launch::deferred});
        l.reset();
        EXPECT_TRUE(f.request_stop());
    }
    EXPECT_EQ(kept.use_count(), 1);
    EXPECT_EQ(*kept, 0);
}

TEST(fiber, deferred_sees_a_stop_requested_before_its_start) {
    loop l;
    fiber f([] { this_fiber::sleep_for(1h); }, {.on = l, .launch = launch::deferred});
    EXPECT_TRUE(f.request_stop());
    f.start();
    l.run();
    EXPECT_TRUE(f.join().is_stopped());
}

// The loop ends while another thread is within the request.
TEST(fiber, can_end_with_its_loop_during_a_stop_request) {
    auto l = std::make_unique<loop>();
    std::atomic<bool> asked{false};
    std::atomic<bool> gone{false};
    fiber f(
        [&] {
            while (!asked) this_fiber::yield();
        },
        {.on = *l});
    {
        stop_callback slow(f.get_stop_token(), [&] {
            asked = true;
            while (!gone) std::this_thread::yield();
        });
        std::thread other([&] { EXPECT_FALSE(f.request_stop()) << "it has ended"; });
        while (!f.done()) l->run_once(l->now());
        l.reset();
        gone = true;
        other.join();
    }
    EXPECT_FALSE(f.join().is_stopped());
}

TEST(fiber, can_end_with_its_loop_in_a_race_with_request_stop) {
    for (int i = 0; i < 300; ++i) {
        auto l = std::make_unique<loop>();
        std::atomic<bool> go{false};
        fiber f([&] { go = true; }, {.on = *l});
        std::thread other([&] {
            while (!go) std::this_thread::yield();
            f.request_stop();
        });
        l->run();
        l.reset();
        other.join();
        f.join();
    }
}

TEST(fiber, never_started_destroys_its_function_without_a_stack) {
    struct no_stack {
        int& taken;
        stack acquire() noexcept {
            ++taken;
            return {};
        }
        void release(stack) noexcept {}
        std::size_t stack_bytes() const noexcept { return 16384; }
    };
    loop l;
    int taken = 0;
    no_stack source{taken};
    auto kept = std::make_shared<int>();
    {
        fiber f([kept] { ++*kept; },
                {.on = l, .launch = launch::deferred, .stack = stack_allocator_ref(source)});
        EXPECT_EQ(kept.use_count(), 2);
    }
    EXPECT_EQ(kept.use_count(), 1);
    EXPECT_EQ(*kept, 0);
    EXPECT_EQ(taken, 0);
    EXPECT_EQ(l.flow_count(), 0u);
}

TEST(fiber, can_destroy_its_own_handle) {
    virtual_loop l(1);
    int destroyed = 0;
    bool asked = false;
    auto own = std::make_unique<fiber>();
    *own = fiber(
        [&] {
            counted c{destroyed};
            this_fiber::yield();
            own.reset();
            asked = this_fiber::get_stop_token().stop_requested();
            this_fiber::sleep_for(1h);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(destroyed, 1);
    EXPECT_TRUE(asked);
    EXPECT_EQ(l.now(), time_point{});
}

TEST(fiber, handle_outlives_the_loop) {
    fiber f;
    fiber g;
    {
        loop l;
        f = fiber([] {}, {.on = l});
        g = fiber([] {}, {.on = l});
        l.run();
    }
    EXPECT_TRUE(f.done());
    EXPECT_FALSE(f.request_stop()) << "it has ended";
    EXPECT_FALSE(f.join().is_stopped());
    EXPECT_TRUE(g.get_stop_token().stop_possible());
}

// -- detached, unhandled ----------------------------------------------------------------------

TEST(fiber, detached_keeps_running_and_reports_its_exception) {
    const unhandled_seen seen;
    virtual_loop l(1);
    int ran = 0;
    fiber([&] { this_fiber::sleep_for(1ms), ++ran; }, {.on = l}).detach();
    fiber([] { throw 1; }, {.name = "lost", .on = l}).detach();
    l.run();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(seen.calls, 1);
    EXPECT_EQ(seen.name, "lost");
}

TEST(fiber, detached_after_failing_reports_its_exception) {
    const unhandled_seen seen;
    virtual_loop l(1);
    fiber f([] { throw 1; }, {.on = l});
    l.run();
    EXPECT_EQ(seen.calls, 0);
    f.detach();
    EXPECT_EQ(seen.calls, 1);
}

TEST(fiber, destroyed_with_an_unread_exception_reports_it) {
    const unhandled_seen seen;
    virtual_loop l(1);
    fiber outer(
        [] {
            fiber f([] { throw 1; });
            this_fiber::yield();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen.calls, 1);
    outer.join();
}

TEST(fiber, detached_and_stopped_reports_no_exception) {
    const unhandled_seen seen;
    {
        loop l;
        fiber([] { this_fiber::sleep_for(1h); }, {.on = l}).detach();
        l.run_until_idle();
    }
    EXPECT_EQ(seen.calls, 0);
}

// -- stop -------------------------------------------------------------------------------------

TEST(fiber, stopped_before_it_starts_runs_to_its_first_wait) {
    virtual_loop l(1);
    ints seen;
    fiber f(
        [&] {
            seen.push_back(1);
            this_fiber::yield();
            seen.push_back(2);
        },
        {.on = l});
    EXPECT_TRUE(f.request_stop());
    EXPECT_FALSE(f.request_stop());
    l.run();
    EXPECT_EQ(seen, ints{1});
    EXPECT_EQ(f.join().reason(), stop_reason::user);
}

TEST(fiber, stopped_while_running_continues_to_its_next_wait) {
    virtual_loop l(1);
    ints seen;
    fiber f;
    f = fiber(
        [&] {
            EXPECT_TRUE(f.request_stop(stop_reason::deadline));
            seen.push_back(1);
            this_fiber::sleep_for(1h);
            seen.push_back(2);
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen, ints{1});
    EXPECT_EQ(f.join().reason(), stop_reason::deadline);
    EXPECT_EQ(l.now(), time_point{});
}

TEST(fiber, stopped_by_another_thread_while_running_ends) {
    loop_thread there;
    std::atomic<bool> running{false};
    fiber f(
        [&] {
            running = true;
            for (;;) this_fiber::yield();
        },
        {.on = there});
    while (!running) std::this_thread::yield();
    EXPECT_TRUE(f.request_stop());
    EXPECT_TRUE(f.join().is_stopped());
}

TEST(fiber, stopped_while_waiting_is_woken_at_once) {
    virtual_loop l(1);
    int destroyed = 0;
    fiber sleeper(
        [&] {
            counted c{destroyed};
            this_fiber::sleep_for(1h);
        },
        {.on = l});
    fiber joiner(
        [&] {
            counted c{destroyed};
            sleeper.join();
        },
        {.on = l});
    fiber stopper(
        [&] {
            this_fiber::sleep_for(1ms);
            joiner.request_stop();
            this_fiber::sleep_for(1ms);
            EXPECT_EQ(destroyed, 1);
            sleeper.request_stop();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point(2ms));
    EXPECT_TRUE(joiner.join().is_stopped());
    EXPECT_TRUE(sleeper.join().is_stopped());
    stopper.join();
}

TEST(fiber, stopped_by_another_thread_while_waiting_always_ends) {
    loop_thread there;
    for (int i = 0; i < 200; ++i) {
        fiber f([] { this_fiber::sleep_for(1h); }, {.on = there});
        if (i % 2 == 0) std::this_thread::yield();
        EXPECT_TRUE(f.request_stop());
        EXPECT_TRUE(f.join().is_stopped());
    }
}

TEST(fiber, stopped_after_its_end_is_unaffected) {
    virtual_loop l(1);
    fiber f([] {}, {.on = l});
    l.run();
    EXPECT_FALSE(f.request_stop());
    EXPECT_FALSE(f.join().is_stopped());
    EXPECT_FALSE(f.request_stop()) << "there is none";
}

TEST(fiber, stopped_fails_every_later_wait_except_under_a_shield) {
    virtual_loop l(1);
    int thrown = 0;
    fiber f(
        [&] {
            for (int i = 0; i < 3; ++i) {
                try {
                    this_fiber::sleep_for(1h);
                } catch (const stopped&) {
                    ++thrown;
                }
            }
            {
                shield s;
                this_fiber::sleep_for(1ms);
                this_fiber::yield();
                this_fiber::throw_if_stopped();
            }
            EXPECT_EQ(l.now(), time_point(1ms));
            EXPECT_THROW(this_fiber::throw_if_stopped(), stopped);
            this_fiber::yield();
            ADD_FAILURE();
        },
        {.on = l});
    f.request_stop();
    l.run();
    EXPECT_EQ(thrown, 3);
    EXPECT_TRUE(f.join().is_stopped());
}

TEST(fiber, can_wait_in_a_destructor_while_a_stop_unwinds_it) {
    virtual_loop l(1);
    int steps = 0;
    fiber f(
        [&] {
            struct waits {
                int& n;
                ~waits() {
                    this_fiber::yield();
                    this_fiber::sleep_for(1ms);
                    ++n;
                }
            } const w{steps};
            this_fiber::sleep_for(1h);
        },
        {.on = l});
    f.request_stop();
    l.run();
    EXPECT_EQ(steps, 1);
    EXPECT_EQ(l.now(), time_point(1ms));
    EXPECT_TRUE(f.join().is_stopped());
}

TEST(fiber, race_of_stop_and_end_has_one_outcome) {
    loop_thread there;
    int stops = 0;
    for (int i = 0; i < 1000; ++i) {
        fiber f([] { this_fiber::yield(); }, {.on = there});
        std::thread other([&] { f.request_stop(); });
        f.request_stop();
        other.join();
        stops += f.join().is_stopped();
    }
    EXPECT_LE(stops, 1000);
}

// -- this_fiber -------------------------------------------------------------------------------

TEST(this_fiber, has_a_unique_id_and_a_changeable_name) {
    virtual_loop l(1);
    std::set<fiber::id> ids;
    std::vector<fiber> all;
    for (int i = 0; i < 10; ++i)
        all.emplace_back(
            [&] {
                EXPECT_TRUE(this_fiber::exists());
                ids.insert(this_fiber::get_id());
                EXPECT_EQ(this_fiber::name(), "first");
                this_fiber::set_name("second");
                EXPECT_EQ(this_fiber::name(), "second");
            },
            fiber_options{.name = std::string("first"), .on = l});
    for (const fiber& f : all) {
        EXPECT_EQ(f.name(), "first");
        EXPECT_NE(f.get_id(), 0u);
    }
    l.run();
    for (fiber& f : all) {
        EXPECT_EQ(f.name(), "second");
        EXPECT_EQ(ids.count(f.get_id()), 1u);
        f.join();
        EXPECT_EQ(f.get_id(), 0u);
    }
    EXPECT_EQ(ids.size(), 10u);
}

TEST(this_fiber, does_not_exist_outside_a_fiber) {
    EXPECT_FALSE(this_fiber::exists());
    EXPECT_EQ(this_fiber::get_id(), 0u);
    EXPECT_EQ(this_fiber::name(), "");
    EXPECT_FALSE(this_fiber::get_stop_token().stop_possible());
    EXPECT_EQ(this_fiber::stack_usage_bytes(), 0u);
    this_fiber::throw_if_stopped();
    const time_point until = steady_now() + 1ms;
    this_fiber::sleep_until(until);
    EXPECT_GE(steady_now(), until);
}

WEFT_NOINLINE void use_stack(std::size_t bytes) {
    auto* p = static_cast<volatile char*>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; i += 512) p[i] = 1;
}

TEST(this_fiber, reports_its_stack_usage) {
    virtual_loop l(1);
    fiber f(
        [] {
            const std::size_t before = this_fiber::stack_usage_bytes();
            EXPECT_GT(before, 0u);
            use_stack(40 * 1024);
            const std::size_t used = this_fiber::stack_usage_bytes();
            EXPECT_GE(used, 40u * 1024);
            EXPECT_LE(used, 128u * 1024);
        },
        {.on = l, .stack_bytes = 128 * 1024});
    l.run();
    f.join();
}

TEST(this_fiber, sleep_with_a_past_deadline_still_yields) {
    loop l;
    ints seen;
    fiber a(
        [&] {
            this_fiber::sleep_for(-1h);
            seen.push_back(1);
        },
        {.on = l});
    fiber b([&] { seen.push_back(2); }, {.on = l});
    l.run();
    EXPECT_EQ(seen, (ints{2, 1}));
    a.join();
    b.join();
}

// -- what it inherits, how many ---------------------------------------------------------------

TEST(fiber, inherits_the_bindings_of_its_creator) {
    context_local<int> user(0);
    virtual_loop l(1);
    ints seen;
    fiber outer(
        [&] {
            fiber inner;
            {
                auto bound = user.bind(7);
                inner = fiber([&] {
                    this_fiber::sleep_for(1ms);
                    seen.push_back(*user);
                    auto own = user.bind(8);
                    fiber([&] { seen.push_back(*user); }).join();
                });
            }
            EXPECT_EQ(*user, 0);
            inner.join();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen, (ints{7, 8}));
    outer.join();
}

TEST(fiber, runs_beside_a_hundred_thousand_others) {
    constexpr int count = WEFT_TEST_TSAN ? 2000 : WEFT_TEST_ASAN ? 10000 : 100000;
    loop l;
    int turns = 0;
    std::vector<fiber> all;
    all.reserve(count);
    for (int i = 0; i < count; ++i)
        all.emplace_back(
            [&] {
                ++turns;
                this_fiber::yield();
                ++turns;
                this_fiber::sleep_for(1ms);
                ++turns;
            },
            fiber_options{.on = l, .stack_bytes = 16384});
    l.run();
    EXPECT_EQ(turns, 3 * count);
    for (fiber& f : all) f.join();
}

TEST(fiber, fails_without_a_stack_before_its_function_is_called) {
    struct no_stack {
        stack acquire() noexcept { return {}; }
        void release(stack) noexcept {}
        std::size_t stack_bytes() const noexcept { return 16384; }
    };
    loop l;
    no_stack source;
    int ran = 0;
    auto kept = std::make_shared<int>();
    fiber f([&ran, kept] { ++ran; }, {.on = l, .stack = stack_allocator_ref(source)});
    l.run();
    EXPECT_EQ(kept.use_count(), 1) << "what it holds ends with it";
    EXPECT_THROW(f.join(), std::bad_alloc);
    EXPECT_EQ(ran, 0);
}

TEST(fiber, cyclic_joins_wait_until_one_is_stopped) {
    loop l;
    static std::atomic<int> reports;
    reports = 0;
    l.on_deadlock([](loop& where) {
        ++reports;
        where.stop();
    });
    fiber a, b;
    a = fiber([&] { b.join(); }, {.on = l});
    b = fiber([&] { a.join(); }, {.on = l});
    l.run();
    EXPECT_EQ(reports, 1);
    b.request_stop();  // b's join of a ends, and so does a's of b
    l.run();
    EXPECT_TRUE(a.done());
    EXPECT_EQ(l.flow_count(), 0u);
}

TEST(fiber, leaks_no_file_descriptor_over_a_thousand_threads) {
    const auto count_of_descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const int many = testing::slow ? 100 : 1000;
    const auto before = count_of_descriptors();
    int ran = 0;
    for (int i = 0; i < many; ++i)
        std::thread([&] {
            loop l;
            EXPECT_GE(l.native_handle(), 0);
            fiber f(
                [&] {
                    this_fiber::yield();
                    ++ran;
                },
                {.on = l});
            l.run();
            f.join();
        }).join();
    EXPECT_EQ(ran, many);
    EXPECT_EQ(count_of_descriptors(), before);
}

TEST(fiber, survives_self_move_assignment) {
    loop l;
    int ran = 0;
    fiber f([&] { ++ran; }, {.on = l});
    fiber& same = f;
    f = std::move(same);
    EXPECT_TRUE(f.joinable());
    l.run();
    EXPECT_FALSE(f.join().is_stopped());
    EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace weft
