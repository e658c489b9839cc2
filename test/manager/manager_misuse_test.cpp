// What ends the program, by name; and what is harmless, by name.

#include <gtest/gtest.h>

#include "test/manager/managed.hpp"

using namespace std::chrono_literals;

namespace {

using weft::manager_errc;
using weft::task_manager;

TEST(manager_misuse, of_unknown_ids_fails_with_no_such_task) {
    task_manager<> m;
    const std::uint64_t wrong = 12345;
    EXPECT_EQ(m.start(wrong), manager_errc::no_such_task);
    EXPECT_EQ(m.resume(wrong), manager_errc::no_such_task);
    EXPECT_EQ(m.cancel(wrong), manager_errc::no_such_task);
    EXPECT_EQ(m.kill(wrong), manager_errc::no_such_task);
    EXPECT_EQ(m.set_time_limit(wrong, 1s), manager_errc::no_such_task);
    EXPECT_EQ(m.on_finish(wrong, [] {}), manager_errc::no_such_task);
    EXPECT_EQ(m.then(wrong, [] {}).error(), manager_errc::no_such_task);
    EXPECT_EQ(m.join(wrong).error(), manager_errc::no_such_task);
    EXPECT_EQ(m.join<int>(wrong).error(), manager_errc::no_such_task);
    EXPECT_EQ(m.deadline(wrong), weft::never);
    EXPECT_FALSE(m.complete(wrong, 1));
    EXPECT_FALSE(m.find(wrong));
}

TEST(manager_misuse_death, spawn_outside_any_executor) {
    EXPECT_DEATH(
        {
            task_manager<> m;
            static_cast<void>(m.spawn([] {}));
        },
        "a task is spawned outside of any executor");
}

TEST(manager_misuse_death, spawn_of_an_empty_task) {
    EXPECT_DEATH(
        {
            weft::loop l;
            task_manager<> m({.on = l});
            static_cast<void>(m.spawn(weft::task<int>()));
        },
        "a task that is empty or has begun is to be run");
}

TEST(manager_misuse_death, destruction_with_tasks_on_a_loop_that_does_not_run) {
    EXPECT_DEATH(
        {
            weft::loop l;
            task_manager<> m({.on = l});
            static_cast<void>(m.spawn([] { weft::this_fiber::sleep_for(1h); }));
            l.run_until_idle();
        },
        "executors that do not run have tasks of it");
}

TEST(manager_misuse_death, zero_resolution) {
    EXPECT_DEATH(task_manager<> m({.resolution = 0s}), "whose deadlines have no resolution");
}

}  // namespace
