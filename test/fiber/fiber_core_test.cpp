#include "weft/fiber/fiber_core.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace weft::detail {
namespace {

TEST(fiber_core, is_resumed_as_a_coroutine_frame_is) {
    loop l;
    fiber_core* seen = nullptr;
    std::coroutine_handle<> handle;
    fiber f(
        [&] {
            seen = fiber_core::current();
            handle = current_flow()->handle;
            this_fiber::yield();
            seen = nullptr;
        },
        {.on = &l});
    l.run_once(l.now());
    l.run_until_idle();
    EXPECT_EQ(seen, nullptr);
    EXPECT_TRUE(handle);
    f.join();
}

TEST(fiber_core, begins_with_the_two_words_of_a_frame) {
    loop l;
    const void* address = nullptr;
    const void* core = nullptr;
    fiber f(
        [&] {
            address = current_flow()->handle.address();
            core = fiber_core::current();
        },
        {.on = &l});
    l.run();
    EXPECT_EQ(address, core);
    EXPECT_NE(core, nullptr);
    f.join();
}

TEST(fiber_core, is_the_current_one_only_while_it_runs) {
    loop l;
    EXPECT_EQ(fiber_core::current(), nullptr);
    fiber_core* a_core = nullptr;
    fiber_core* b_core = nullptr;
    fiber a(
        [&] {
            a_core = fiber_core::current();
            this_fiber::yield();
            EXPECT_EQ(fiber_core::current(), a_core);
        },
        {.on = &l});
    fiber b(
        [&] {
            b_core = fiber_core::current();
            this_fiber::yield();
            EXPECT_EQ(fiber_core::current(), b_core);
        },
        {.on = &l});
    l.run();
    EXPECT_NE(a_core, b_core);
    EXPECT_EQ(fiber_core::current(), nullptr);
    a.join();
    b.join();
}

TEST(fiber_core, lives_in_its_loop_from_its_start_to_its_end) {
    loop l;
    std::size_t within = 0;
    fiber f([&] { within = l.flow_count(); }, {.on = &l});
    EXPECT_EQ(l.flow_count(), 0u);
    l.run_until_idle();
    EXPECT_EQ(within, 1u);
    EXPECT_EQ(l.flow_count(), 0u);
    f.join();
}

TEST(fiber_core, destroyed_by_its_executor_is_killed) {
    testing::virtual_loop on;  // whose deadlines are those of its timers alone
    loop& l = on.loop();
    int destroyed = 0;
    flow* inner = nullptr;
    fiber f(
        [&] {
            struct at_end {
                int& n;
                ~at_end() { ++n; }
            } const a{destroyed};
            inner = current_flow();
            this_fiber::sleep_for(std::chrono::hours(1));
        },
        {.on = &l});
    l.run_until_idle();
    l.post([&] { inner->handle.destroy(); });
    l.run_until_idle();
    EXPECT_EQ(destroyed, 1);
    EXPECT_TRUE(f.done());
    EXPECT_EQ(l.next_deadline(), never) << "its wait was taken back";
    EXPECT_EQ(f.join().reason(), stop_reason::shutdown);
}

}  // namespace
}  // namespace weft::detail
