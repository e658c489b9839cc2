// weft/sync's locks, counts and events, by the calls that a fiber makes, under the interleavings of
// a few agents. Each of them is an atomic_wait_queue; atomic_wait_queue_test.cpp has its walks with
// deadlines, stops and ends of frames. Here are the ways past the queue's lock that each type has
// of its own. The walks are bounded by deviations.
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <shared_mutex>

#include "model/agent.hpp"
#include "model/names.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/shared_mutex.hpp"

namespace {

using model::agent;
using namespace model::names;

// Each of so many comes twice and does what it has to under a Thing.
template <class Thing>
report by_turns(std::size_t count, unsigned deviations) {
    return explore(
        [=](execution& run) {
            Thing t;
            std::array<agent, 3> agents;
            for (std::size_t i = 0; i < count; ++i)
                run.thread("comes", [&, i] { agents[i].run([&] { t.come(i), t.come(i); }); });
            run.go();
            for (const agent& a : agents) a.check();
            agents[0].run([&] { t.check(); });
        },
        {.deviations = deviations});
}

struct under_mutex {
    weft::mutex m;
    model::var<int> count;
    void come(std::size_t) {
        const std::lock_guard held(m);
        count.write(count.read() + 1);
    }
    void check() {
        const std::unique_lock held(m, std::try_to_lock);
        model::require(held.owns_lock(), "it is free");
    }
};

TEST(mutex, admits_one_agent_at_a_time_and_loses_no_waiter) {
    expect_right(by_turns<under_mutex>(2, 4), bounded);
    expect_right(by_turns<under_mutex>(3, 2), bounded);
}

// The first writes, the others read.
struct under_shared_mutex {
    weft::shared_mutex m;
    model::var<int> count;
    void come(std::size_t i) {
        if (i == 0) {
            const std::lock_guard held(m);
            count.write(count.read() + 1);
        } else {
            const std::shared_lock held(m);
            static_cast<void>(count.read());
        }
    }
    void check() {
        const std::unique_lock held(m, std::try_to_lock);
        model::require(held.owns_lock(), "it is free");
    }
};

TEST(shared_mutex, separates_writer_and_readers_and_loses_no_waiter) {
    expect_right(by_turns<under_shared_mutex>(2, 4), bounded);
    expect_right(by_turns<under_shared_mutex>(3, 2), bounded);
}

struct under_semaphore {
    weft::binary_semaphore s{1};
    model::var<int> count;
    void come(std::size_t) {
        s.acquire();
        count.write(count.read() + 1);
        s.release();
    }
    void check() { model::require(s.try_acquire(), "the permit is free"); }
};

TEST(counting_semaphore, passes_its_permit_on_and_loses_no_waiter) {
    expect_right(by_turns<under_semaphore>(2, 4), bounded);
    expect_right(by_turns<under_semaphore>(3, 2), bounded);
}

TEST(latch, releases_waiters_with_all_earlier_writes_visible) {
    expect_right(explore(
                     [](execution& run) {
                         weft::latch l(2);
                         std::array<model::var<int>, 2> data;
                         std::array<agent, 3> agents;
                         for (std::size_t i = 0; i < 2; ++i)
                             run.thread("counts down", [&, i] {
                                 agents[i].run([&] { data[i].write(1), l.count_down(); });
                             });
                         run.thread("waits", [&] {
                             agents[2].run([&] {
                                 l.wait();
                                 model::require(data[0].read() + data[1].read() == 2, "both came");
                             });
                         });
                         run.go();
                         for (const agent& a : agents) a.check();
                     },
                     {.deviations = 4}),
                 bounded);
}

}  // namespace
