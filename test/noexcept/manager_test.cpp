// Managed tasks where weft is built without exceptions: a task is killed, a fiber is asked to stop.
#include <gtest/gtest.h>

#include <memory>

#include "weft/manager/task_manager.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(manager_without_exceptions, kills_a_task_and_stops_a_fiber) {
    testing::virtual_loop l(1);
    task_manager<> m({.on = l.loop()});
    const auto watched = std::make_shared<int>(0);
    const auto body = [](std::shared_ptr<int>) -> task<> { co_await sleep_for(1h); };
    const auto killed = m.spawn_with_handle(body(watched));
    std::error_code why;
    const auto asked =
        m.spawn_with_handle([&] { why = this_managed::suspend<int>(never).error(); });
    l.loop().run_until_idle();
    EXPECT_EQ(watched.use_count(), 2);
    m.kill(killed->id());
    m.kill(asked->id());
    l.loop().run_until_idle();
    EXPECT_EQ(watched.use_count(), 1);
    EXPECT_EQ(why, std::errc::operation_canceled);
    EXPECT_EQ(killed->status(), managed_status::killed);
    EXPECT_EQ(asked->status(), managed_status::killed);
    EXPECT_EQ(m.live_count(), 0u);
}

TEST(manager_without_exceptions, receives_and_returns_values) {
    testing::virtual_loop l(1);
    task_manager<> m({.on = l.loop()});
    const auto h = m.spawn_with_handle([&] { return *this_managed::suspend<int>(never) + 1; });
    EXPECT_FALSE(m.resume(h->id(), 41));
    auto reply = m.expect<int>();
    EXPECT_TRUE(m.complete(reply.sequence(), 7));
    EXPECT_EQ(*reply.wait(never), 7);
    l.run();
    EXPECT_EQ(*h->join<int>(), 42);
}

}  // namespace
}  // namespace weft
