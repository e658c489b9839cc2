// weft/sched/detail/parking.hpp and schedule_inbox.hpp with idle_set.hpp: workers that act as a
// pool's workers do, and threads that launch, in the interleavings up to the deviations named
// below; no walk of it is complete. A flag for which a worker waits represents the driver. Laws:
// what was launched is taken, once, and the worker that takes it sees what was written before the
// launch.
#include "weft/sched/detail/parking.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "model/names.hpp"
#include "weft/sched/detail/schedule_inbox.hpp"

namespace {

using namespace model::names;
using weft::detail::idle_set;
using weft::detail::parking;
using weft::detail::schedule_inbox;

constexpr auto relaxed = std::memory_order_relaxed;

enum class manner {
    as_told,
    offers_before,          // wrong: and then puts
    sleeps_without_a_look,  // wrong
    ends_no_search,         // wrong: it does not pass on what it has found
};

struct item {
    weft::detail::frame words{nullptr, nullptr};
    weft::runnable node;
    model::var<int> written{0};
    model::var<int> taken{0};
};

struct crew {
    crew(unsigned workers, int count, manner m) : idle(workers), left(count), how(m) {}

    void schedule(int first, int end) {
        for (int n = first; n != end; ++n) {
            item& x = items[n];
            x.written.write(n + 1);
            x.node.handle = x.words.handle();
            if (how == manner::offers_before) offer();
            inbox.push(x.node);
            if (how != manner::offers_before) offer();
        }
    }
    void offer() {
        parking::offer(idle, [this](unsigned i) { wake(i); });
    }

    void be_worker(unsigned i) {
        parking mine(idle, i);
        while (left.load(relaxed) != 0) {
            if (mine.begin_search()) {
                if (const weft::ready_turn t = inbox.pop(); t.handle != nullptr) {
                    if (how != manner::ends_no_search)
                        mine.end_search([this](unsigned k) { wake(k); });
                    take(t);
                    continue;
                }
            }
            if (!mine.begin_sleep(
                    [this] { return how != manner::sleeps_without_a_look && !inbox.empty(); }))
                continue;
            model::wait_until(
                [this, i] { return woken[i].load(relaxed) != 0 || left.load(relaxed) == 0; });
            woken[i].store(0, relaxed);
            mine.end_sleep();
        }
    }
    void take(weft::ready_turn t) {
        for (int n = 0; n != 3; ++n) {
            item& x = items[n];
            if (t.handle.address() != &x.words) continue;
            model::require(x.written.read() == n + 1, "what was written before is seen");
            model::require(x.taken.read() == 0, "it is taken once");
            x.taken.write(1);
        }
        left.fetch_sub(1, relaxed);
        if (how == manner::ends_no_search)
            model::wait_until([this] { return left.load(relaxed) == 0; });
    }
    void wake(unsigned i) { woken[i].store(1, relaxed); }

    idle_set idle;
    schedule_inbox inbox;
    item items[3];
    weft::atomic<int> left;
    weft::atomic<int> woken[2] = {};
    const manner how;
};

// The items are launched by one thread, or by two.
report run_crew(unsigned workers, int count, unsigned launchers, manner how,
                const model::options& o) {
    return explore(
        [=](execution& run) {
            crew c(workers, count, how);
            for (unsigned i = 0; i != workers; ++i)
                run.thread("worker", [&c, i] { c.be_worker(i); });
            const int half = launchers == 1 ? count : count / 2;
            run.thread("launcher", [&] { c.schedule(0, half); });
            if (launchers == 2) run.thread("launcher", [&] { c.schedule(half, count); });
            run.go();
            model::require(c.inbox.empty(), "all was taken");
        },
        o);
}

TEST(parking, leaves_no_work_while_all_workers_sleep) {
    expect_right(run_crew(1, 1, 1, manner::as_told, {.deviations = 4}), bounded);
    expect_right(run_crew(1, 2, 2, manner::as_told, {.deviations = 2}), bounded);
    expect_right(run_crew(2, 2, 1, manner::as_told, {.deviations = 2}), bounded);
}

TEST(parking, leaves_no_work_in_random_schedules) {
    expect_right(run_crew(2, 3, 2, manner::as_told, {.random_schedules = 10'000}), bounded);
}

TEST(parking, checker_finds_lost_work_offered_before_it_is_stored) {
    expect_found(run_crew(1, 1, 1, manner::offers_before, {}), "");
}

TEST(parking, checker_finds_lost_work_without_a_second_check) {
    expect_found(run_crew(1, 1, 1, manner::sleeps_without_a_look, {}), "");
}

TEST(parking, checker_finds_lost_work_when_a_search_is_not_ended) {
    expect_found(run_crew(2, 2, 1, manner::ends_no_search, {}), "");
}

}  // namespace
