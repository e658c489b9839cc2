#include "weft/future/detail/in_fiber.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/address_space.hpp"
#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/stack/default_stacks.hpp"
#include "weft/wait/context_local.hpp"

namespace {

using namespace future_tests;
namespace this_fiber = weft::this_fiber;

TEST(in_fiber, reuses_one_fiber_and_stack_for_functions_that_do_not_wait) {
    weft::loop l;
    std::set<const void*> stacks;
    int ran = 0;
    l.post([&] {
        for (int i = 0; i < 100'000; ++i)
            make_ready_future(i)
                .then([&](int) {
                    char here = 0;
                    ++ran;
                    stacks.insert(reinterpret_cast<const void*>(
                        reinterpret_cast<std::uintptr_t>(&here) / weft::default_stack_bytes));
                    EXPECT_TRUE(this_fiber::exists());
                })
                .detach();
    });
    l.run();
    EXPECT_EQ(ran, 100'000);
    EXPECT_LE(stacks.size(), 2u);
}

TEST(in_fiber, lets_other_functions_run_while_one_waits) {
    virtual_loop l(1);
    std::string order;
    run(l, [&] {
        make_ready_future(2ms)
            .then([&](auto d) { this_fiber::sleep_for(d), order += 'b'; })
            .then([&] { order += 'c'; })
            .detach();
        make_ready_future(1ms)
            .then([&](auto d) { this_fiber::sleep_for(d), order += 'a'; })
            .detach();
    });
    EXPECT_EQ(order, "abc");
}

TEST(in_fiber, lets_many_wait_at_once_and_reuses_their_fibers) {
    virtual_loop l(1);
    int through = 0;
    for (int round = 0; round < 3; ++round)
        run(l, [&] {
            for (int i = 0; i < 100; ++i)
                make_ready_future().then([&] { this_fiber::sleep_for(1ms), ++through; }).detach();
        });
    EXPECT_EQ(through, 300);
}

TEST(in_fiber, releases_most_stacks_after_a_peak_and_all_at_thread_exit) {
    const auto used = [] { return weft::default_stack_pool()->stats().used_count; };
    const std::size_t before = used();
    std::thread([&] {
        virtual_loop l(1);
        std::size_t peak = 0;
        run(l, [&] {
            for (int i = 0; i < 100; ++i)
                make_ready_future()
                    .then([&] {
                        this_fiber::sleep_for(1ms);
                        peak = std::max(peak, used());
                    })
                    .detach();
        });
        EXPECT_GE(peak, before + 100);
        EXPECT_LE(used(), before + 16);
    }).join();
    EXPECT_EQ(used(), before);
}

TEST(in_fiber, yields_within_the_loop_and_keeps_it_running) {
    weft::loop l;
    int n = 0;
    future<> f;
    l.post([&] {
        f = make_ready_future().then([&] {
            for (; n < 100; ++n) this_fiber::yield();
        });
    });
    l.run();
    EXPECT_EQ(n, 100);
    EXPECT_TRUE(f.has_value());
}

TEST(in_fiber, is_stopped_while_it_waits) {
    virtual_loop l(1);
    future<int> f;
    bool unwound = false;
    run(l, [&] {
        f = make_ready_future().then([&] {
            struct at_end {
                bool& b;
                ~at_end() { b = true; }
            } const sets{unwound};
            this_fiber::sleep_for(1h);
            return 1;
        });
        l.loop().post(
            [&] { l.loop().post([&] { EXPECT_TRUE(f.request_stop(stop_reason::shutdown)); }); });
    });
    EXPECT_TRUE(unwound);
    EXPECT_EQ(f.error(), std::errc::operation_canceled);
    EXPECT_LT(l.now(), weft::time_point{} + 1h);
}

// A stop that was requested before it waits ends its first wait.
TEST(in_fiber, is_stopped_at_its_first_wait_by_an_earlier_request) {
    virtual_loop l(1);
    future<> f;
    run(l, [&] {
        f = make_ready_future().then([&] {
            EXPECT_TRUE(f.request_stop());
            this_fiber::sleep_for(1h);
        });
    });
    EXPECT_THROW(f.get(), weft::stopped);
    EXPECT_LT(l.now(), weft::time_point{} + 1h);
}

TEST(in_fiber, is_a_new_fiber_for_each_function) {
    static weft::fiber_local<int> local;
    virtual_loop l(1);
    weft::context_local<int> bound(1);
    int sum = 0;
    run(l, [&] {
        const auto b = bound.bind(10);
        for (int i = 0; i < 3; ++i)
            make_ready_future()
                .then([&] {
                    sum += *bound + *local;
                    *local = 100;
                    EXPECT_FALSE(this_fiber::get_stop_token().stop_requested());
                })
                .detach();
    });
    EXPECT_EQ(sum, 30);
    run(l, [&] { make_ready_future().then([&] { sum += *bound; }).detach(); });
    EXPECT_EQ(sum, 31);
}

// What weft/hook keeps in a fiber, each of which a function may leave set.
TEST(in_fiber, leaves_no_setting_of_a_function_to_the_next) {
    using core = weft::detail::fiber_core;
    void (*const sets[])(core&) = {
        [](core& f) { f.hooked = core::hooks::off; },
        [](core& f) { f.hooked = core::hooks::on; },
        [](core& f) { f.stop_answer = 1; },
        [](core& f) { f.cancel_disabled = true; },
        [](core& f) { f.cancel_asynchronous = true; },
        [](core& f) { f.has_cancel_record = true; },
        [](core& f) { f.refused_waits = 1; },
        [](core& f) { f.foreign_locks = 1; },
    };
    for (std::size_t i = 0; i != std::size(sets); ++i) {
        int checked = 0;
        virtual_loop l(1);
        const auto check = [&] {
            const core& f = *core::current();
            EXPECT_TRUE(f.hooked == core::hooks::by_default) << i;
            EXPECT_EQ(f.stop_answer, 0) << i;
            EXPECT_FALSE(f.cancel_disabled) << i;
            EXPECT_FALSE(f.cancel_asynchronous) << i;
            EXPECT_FALSE(f.has_cancel_record) << i;
            EXPECT_EQ(f.refused_waits, 0) << i;
            EXPECT_EQ(f.foreign_locks, 0) << i;
            ++checked;
        };
        const auto two = [&] {
            make_ready_future().then([&] { sets[i](*core::current()); }).detach();
            make_ready_future().then(check).detach();  // in the same fiber, if that is as new
        };
        run(l, two);
        run(l, [&] { make_ready_future().then(check).detach(); });
        EXPECT_EQ(checked, 2);
    }
}

TEST(in_fiber, is_unwound_when_its_loop_ends) {
    bool unwound = false;
    future<> f;
    {
        weft::loop l;
        l.post([&] {
            f = make_ready_future().then([&] {
                struct at_end {
                    bool& b;
                    ~at_end() { b = true; }
                } const sets{unwound};
                try {
                    this_fiber::sleep_for(1h);
                } catch (const weft::stopped&) {
                    this_fiber::sleep_for(1h);
                }
            });
            l.stop();
        });
        l.run();
        l.run_until_idle();
        EXPECT_FALSE(unwound);
    }
    EXPECT_TRUE(unwound);
    EXPECT_EQ(f.error(), std::errc::operation_canceled);
}

#if !WEFT_ASAN && !WEFT_TSAN
// In a process of its own, on a thread that has no idle fibers: from here on there is no memory.
[[noreturn]] void run_without_memory() {
    weft::loop l;
    l.post([] {});
    l.run_until_idle();
    promise<> p(l);
    bool called = false;
    auto f = p.get_future().then([&] { called = true; });
    const rlimit none{};
    setrlimit(RLIMIT_AS, &none);
    for (std::size_t bytes = 64; bytes <= weft::detail::block_cache::maximum_block_bytes;
         bytes += 64)
        while (weft::detail::block_cache::try_acquire(bytes) != nullptr) {
        }
    p.set_value();
    l.run_until_idle();
    std::_Exit(!called && f.error() == std::errc::not_enough_memory ? 7 : 1);
}
TEST(in_fiber, without_memory_for_a_fiber_fails_the_future) {
    if (!weft::testing::address_space_can_be_limited()) GTEST_SKIP() << "memory has no limit here";
    EXPECT_EXIT(std::thread(run_without_memory).join(), ::testing::ExitedWithCode(7), "");
}
#endif

}  // namespace
