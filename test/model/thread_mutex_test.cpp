// The checker's own mutex and condition variable (weft/base/detail/thread_mutex.hpp): they do what
// std's do, and what is wrong with std's is wrong with these. Small walks, complete unless a
// comment calls them bounded.
#include "weft/base/detail/thread_mutex.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>

#include "model/names.hpp"

namespace {

using namespace model::names;

TEST(thread_mutex, admits_one_thread_at_a_time_and_publishes_its_writes) {
    expect_right(explore(
        [](execution& run) {
            weft::detail::thread_mutex lock;
            model::var<int> count;
            for (int n = 0; n != 2; ++n)
                run.thread("adds", [&] {
                    const std::lock_guard held(lock);
                    count.write(count.read() + 1);
                });
            run.go();
            model::require(count.read() == 2, "both have added");
        },
        {.deviations = 20}));
}

enum class manner { as_told, tests_before_the_lock, sets_without_the_lock };

report tell_of_a_flag(manner how) {
    return explore(
        [how](execution& run) {
            weft::detail::thread_mutex lock;
            weft::detail::thread_condition changed;
            weft::atomic<bool> flag{false};
            const auto is_set = [&] { return flag.load(std::memory_order_relaxed); };
            run.thread("waits", [&] {
                if (how == manner::tests_before_the_lock && is_set()) return;
                std::unique_lock held(lock);
                while (how == manner::tests_before_the_lock || !is_set()) {
                    changed.wait(held);
                    if (how == manner::tests_before_the_lock) return;
                }
            });
            run.thread("tells", [&] {
                {
                    std::unique_lock held(lock, std::defer_lock);
                    if (how != manner::sets_without_the_lock) held.lock();
                    flag.store(true, std::memory_order_relaxed);
                }
                changed.notify_one();
            });
            run.go();
        },
        {.deviations = 20});
}

TEST(thread_condition, wakes_for_a_flag_set_under_the_lock) {
    expect_right(tell_of_a_flag(manner::as_told));
}

TEST(thread_condition, checker_finds_lost_wake_without_the_lock) {
    expect_found(tell_of_a_flag(manner::tests_before_the_lock), "deadlock: waits");
    expect_found(tell_of_a_flag(manner::sets_without_the_lock), "deadlock: waits");
}

TEST(thread_condition, wait_ends_when_its_deadline_passes) {
    expect_right(explore(
        [](execution& run) {
            model::time_has_passed.store(false);
            weft::detail::thread_mutex lock;
            weft::detail::thread_condition changed;
            run.thread("waits", [&] {
                std::unique_lock held(lock);
                const bool in_time = changed.wait_until(held, 0);
                model::require(!in_time, "and says so");
            });
            run.thread("clock", [] { model::let_time_pass(); });
            run.go();
        },
        {.deviations = 20}));
}

// The waiter may own both objects, and destroy them when its wait returns.
report end_it(bool notifies_under_the_lock) {
    return explore(
        [=](execution& run) {
            struct both {
                weft::detail::thread_mutex lock;
                weft::detail::thread_condition changed;
                bool flag = false;
            };
            auto it = std::make_unique<both>();
            run.thread("owner", [&] {
                {
                    std::unique_lock held(it->lock);
                    while (!it->flag) it->changed.wait(held);
                }
                it.reset();
            });
            run.thread("tells", [&, at = it.get()] {
                std::unique_lock held(at->lock);
                at->flag = true;
                if (!notifies_under_the_lock) held.unlock();
                at->changed.notify_one();
            });
            run.go();
        },
        {.deviations = 20});
}

TEST(thread_condition, needs_notification_under_the_lock_before_destruction) {
    expect_right(end_it(true));
    expect_found(end_it(false), "");
}

}  // namespace
