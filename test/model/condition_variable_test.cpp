// weft/sync/detail/condition_queue.hpp, by condition_variable with its mutex and by
// condition_variable_any with a reader's lock, under the interleavings of a few threads that wait,
// notify, and stop the token of a wait. The walks are bounded by deviations.
#include "weft/sync/condition_variable.hpp"

#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include "model/agent.hpp"
#include "model/names.hpp"
#include "weft/stop/stop_source.hpp"
#include "weft/sync/condition_variable_any.hpp"
#include "weft/sync/shared_mutex.hpp"

namespace {

using model::agent;
using namespace model::names;

struct scene {
    weft::mutex m;
    weft::condition_variable changed;
    model::var<bool> ready{false};  // under m
    weft::stop_source stop;
    std::array<agent, 4> agents;

    // What a token adds to a wait is that it may end without `ready`.
    void wait(std::size_t who, bool with_token) {
        agents[who].run([&] {
            std::unique_lock lock(m);
            const auto is_ready = [&] { return ready.read(); };
            if (!with_token)
                changed.wait(lock, is_ready);
            else if (!changed.wait(lock, stop.get_token(), is_ready))
                model::require(stop.stop_requested(), "nothing else ends it");
            model::require(m.is_owned_by_caller(), "a waiter that comes back holds the mutex");
        });
    }
    void notify(std::size_t who, bool all) {
        agents[who].run([&] {
            {
                const std::lock_guard held(m);
                ready.write(true);
            }
            all ? changed.notify_all() : changed.notify_one();
        });
    }
    void check() {
        for (const agent& a : agents) a.check();
        model::require(m.try_lock(), "the mutex is free");
        m.unlock();
    }
};

TEST(condition_variable, misses_no_notification) {
    for (bool all : {false, true})
        expect_right(explore(
                         [=](execution& run) {
                             scene s;
                             run.thread("waits", [&] { s.wait(0, false); });
                             run.thread("notifies", [&] { s.notify(1, all); });
                             run.go();
                             s.agents[3].run([&] { s.check(); });
                         },
                         {.deviations = 4}),
                     bounded);
}

// notify_all() has claimed both waiters and woken one of them when the stop searches for the other.
TEST(condition_variable, wakes_once_a_waiter_both_notified_and_stopped) {
    expect_right(explore(
                     [](execution& run) {
                         scene s;
                         run.thread("waits", [&] { s.wait(0, true); });
                         run.thread("waits too", [&] { s.wait(1, true); });
                         run.thread("notifies", [&] { s.changed.notify_all(); });
                         run.thread("stops", [&] { s.stop.request_stop(); });
                         run.go();
                         s.agents[3].run([&] { s.check(); });
                     },
                     {.deviations = 1}),
                 bounded);
}

TEST(condition_variable, notify_all_wakes_all_waiters) {
    expect_right(explore(
                     [](execution& run) {
                         scene s;
                         run.thread("waits", [&] { s.wait(0, false); });
                         run.thread("waits too", [&] { s.wait(1, true); });
                         run.thread("notifies", [&] { s.notify(2, true); });
                         run.go();
                         s.agents[3].run([&] { s.check(); });
                     },
                     {.deviations = 2}),
                 bounded);
}

TEST(condition_variable_any, misses_no_notification_with_a_readers_lock) {
    for (bool all : {false, true})
        expect_right(explore(
                         [=](execution& run) {
                             weft::shared_mutex m;
                             weft::condition_variable_any changed;
                             model::var<bool> ready{false};  // under m
                             std::array<agent, 3> agents;
                             run.thread("waits", [&] {
                                 agents[0].run([&] {
                                     std::shared_lock reads(m);
                                     changed.wait(reads, [&] { return ready.read(); });
                                     model::require(m.is_shared(), "it holds the lock");
                                 });
                             });
                             run.thread("notifies", [&] {
                                 agents[1].run([&] {
                                     {
                                         const std::lock_guard held(m);
                                         ready.write(true);
                                     }
                                     all ? changed.notify_all() : changed.notify_one();
                                 });
                             });
                             run.go();
                             for (const agent& a : agents) a.check();
                             agents[2].run([&] {
                                 model::require(m.try_lock(), "the lock is free");
                                 m.unlock();
                             });
                         },
                         {.deviations = 3}),
                     bounded);
}

}  // namespace
