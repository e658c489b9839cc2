// weft/base/detail/system_mutex.hpp under the interleavings of a few threads, with a futex whose
// check and sleep are one step. Small walks, complete unless a comment calls them bounded.
#include "weft/base/detail/system_mutex.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "model/names.hpp"
#include "model/thread_mutex.hpp"

namespace {

using namespace model::names;
using mutex = weft::detail::mutex_of_system<weft::atomic>;
using condition = weft::detail::condition_of_system<weft::atomic>;

// Two inside at once, or one that does not see what the last one did, race; one that is not woken
// is a deadlock.
report hold(int thread_count, int times, unsigned deviations) {
    return explore(
        [=](execution& run) {
            mutex lock;
            model::var<int> count{0};
            for (int n = 0; n < thread_count; ++n)
                run.thread("owner", [&] {
                    for (int t = 0; t < times; ++t) {
                        const std::lock_guard held(lock);
                        count.write(count.read() + 1);
                    }
                });
            run.go();
            model::require(count.read() == thread_count * times, "each was inside");
        },
        {.deviations = deviations});
}

TEST(system_mutex, admits_one_thread_at_a_time_and_wakes_the_next) {
    expect_right(hold(2, 1, 20));
    expect_right(hold(2, 2, 6), bounded);
    expect_right(hold(3, 1, 6), bounded);
}

enum class manner { as_told, tests_before_the_lock, sets_without_the_lock };

report tell_of_a_flag(manner how, bool all, int sleepers) {
    return explore(
        [=](execution& run) {
            mutex lock;
            condition changed;
            weft::atomic<bool> flag{false};
            model::var<int> data{0};
            const auto is_set = [&] { return flag.load(std::memory_order_relaxed); };
            for (int n = 0; n < sleepers; ++n)
                run.thread("waits", [&] {
                    if (how == manner::tests_before_the_lock && is_set()) return;
                    std::unique_lock held(lock);
                    if (how == manner::tests_before_the_lock) return changed.wait(held);
                    while (!is_set()) changed.wait(held);
                    if (how == manner::as_told)
                        model::require(data.read() == 1, "what came before it is seen");
                });
            run.thread("tells", [&] {
                {
                    std::unique_lock held(lock, std::defer_lock);
                    if (how != manner::sets_without_the_lock) held.lock();
                    if (how == manner::as_told) data.write(1);
                    flag.store(true, std::memory_order_relaxed);
                }
                if (all)
                    changed.notify_all();
                else
                    changed.notify_one();
            });
            run.go();
        },
        {.deviations = sleepers == 1 ? 8u : 3u});
}

TEST(system_condition, wakes_for_a_flag_set_under_the_lock) {
    expect_right(tell_of_a_flag(manner::as_told, false, 1), bounded);
    expect_right(tell_of_a_flag(manner::as_told, true, 2), bounded);
}

TEST(system_condition, checker_finds_lost_wake_without_the_lock) {
    expect_found(tell_of_a_flag(manner::tests_before_the_lock, false, 1), "deadlock: waits");
    expect_found(tell_of_a_flag(manner::sets_without_the_lock, false, 1), "deadlock: waits");
}

TEST(system_condition, wait_ends_when_its_deadline_passes) {
    expect_right(explore(
        [](execution& run) {
            model::time_has_passed.store(false);
            mutex lock;
            condition changed;
            run.thread("waits", [&] {
                std::unique_lock held(lock);
                const bool in_time = changed.wait_until(held, weft::time_point{});
                model::require(!in_time, "and says so");
            });
            run.thread("clock", [] { model::let_time_pass(); });
            run.go();
        },
        {.deviations = 8}));
}

}  // namespace
