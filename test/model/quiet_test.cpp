// weft/sched/detail/quiet.hpp with parking.hpp and schedule_inbox.hpp: workers that act as a pool's
// workers do, a thread that launches and waits until all is quiet, and another that launches
// concurrently. A flag represents a worker's driver. Laws: the wait returns; what the waiter
// launched has run by then, and is visible. Bounded by deviations.
#include "weft/sched/detail/quiet.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"
#include "weft/sched/detail/parking.hpp"
#include "weft/sched/detail/schedule_inbox.hpp"

namespace {

using namespace model::names;
using weft::detail::idle_set;
using weft::detail::parking;
using weft::detail::quiet;
using weft::detail::schedule_inbox;

constexpr auto relaxed = std::memory_order_relaxed;

struct item {
    weft::detail::frame words{nullptr, nullptr};
    weft::runnable node;
    model::var<int> ran{0};
};

struct crew {
    explicit crew(unsigned workers) : idle(workers), all(idle) {}

    void schedule(item& x) {
        x.node.handle = x.words.handle();
        inbox.push(x.node);
        parking::offer(idle, [this](unsigned i) { wake(i); });
    }
    void be_worker(unsigned i) {
        parking mine(idle, i);
        while (!over.load(relaxed)) {
            if (mine.begin_search()) {
                if (const weft::ready_turn t = inbox.pop(); t.handle != nullptr) {
                    mine.end_search([this](unsigned k) { wake(k); });
                    for (item& x : items)
                        if (t.handle.address() == &x.words) x.ran.write(x.ran.read() + 1);
                    continue;
                }
            }
            if (!mine.begin_sleep([this] { return !inbox.empty(); })) continue;
            all.worker_rests();
            model::wait_until([this, i] { return woken[i].load(relaxed) || over.load(relaxed); });
            woken[i].store(false, relaxed);
            mine.end_sleep();
        }
    }
    void wake(unsigned i) { woken[i].store(true, relaxed); }

    idle_set idle;
    quiet all;
    schedule_inbox inbox;
    item items[2];
    weft::atomic<bool> woken[2] = {};
    weft::atomic<bool> over{false};
};

report wait_for_quiet(unsigned workers, bool another, const model::options& o) {
    return explore(
        [=](execution& run) {
            model::time_has_passed.store(false);
            crew c(workers);
            weft::atomic<bool> launched{!another};
            for (unsigned i = 0; i != workers; ++i)
                run.thread("worker", [&c, i] { c.be_worker(i); });
            run.thread("waits", [&] {
                c.schedule(c.items[0]);
                require(c.all.wait_until(weft::never, [&] { return c.inbox.empty(); }), "quiet");
                require(c.items[0].ran.read() == 1, "what it launched has run");
                model::wait_until([&] { return launched.load(std::memory_order_acquire); });
                require(c.all.wait_until(weft::never, [&] { return c.inbox.empty(); }), "quiet");
                c.over.store(true, relaxed);
            });
            if (another)
                run.thread("launches", [&] {
                    c.schedule(c.items[1]);
                    launched.store(true, std::memory_order_release);
                });
            run.go();
            require(c.items[1].ran.read() == (another ? 1 : 0), "and so has the other's");
        },
        o);
}

TEST(quiet, wait_returns_once_scheduled_work_has_run) {
    expect_right(wait_for_quiet(1, false, {.deviations = 3}), bounded);
    expect_right(wait_for_quiet(1, true, {.deviations = 2}), bounded);
    expect_right(wait_for_quiet(2, false, {.deviations = 2}), bounded);
}

// An idle worker wakes by itself, and has removed what it takes from its queue before it runs it.
// `claims`: a launcher is about to wake the worker meanwhile.
report wait_beside_one_that_runs(bool claims, const model::options& o) {
    return explore(
        [=](execution& run) {
            idle_set idle(1);
            quiet all(idle);
            weft::atomic<int> left{1};
            model::var<int> ran{0};
            idle.announce(0, false);
            if (claims) run.thread("launches", [&] { static_cast<void>(idle.claim()); });
            run.thread("worker", [&] {
                const bool claimed = !idle.retract(0);
                require(claims || !claimed, "nobody has claimed it");
                left.store(0, relaxed);
                if (claimed) static_cast<void>(idle.end_search());
                ran.write(1);
                idle.announce(0, false);
            });
            run.thread("waits", [&] {
                if (all.is_so([&] { return left.load(relaxed) == 0; }))
                    require(ran.read() == 1, "it has run");
            });
            run.go();
        },
        o);
}

// Whole.
TEST(quiet, is_not_reached_while_a_worker_runs_taken_work) {
    expect_right(wait_beside_one_that_runs(false, {.deviations = 20}));
}

// The worker takes what the launcher has put before that one has come to its end.
TEST(quiet, is_not_reached_while_a_worker_is_being_claimed) {
    expect_right(wait_beside_one_that_runs(true, {.deviations = 5}), bounded);
}

// The launcher's claim may find that the worker is awake, and may end after the worker has gone to
// sleep again. The worker has notified no waiter then, because a claim was in progress.
TEST(quiet, is_notified_beside_a_claim_that_finds_no_worker) {
    expect_right(explore(
                     [](execution& run) {
                         model::time_has_passed.store(false);
                         idle_set idle(1);
                         quiet all(idle);
                         weft::atomic<bool> woken{true};
                         weft::atomic<bool> over{false};
                         idle.announce(0, false);
                         run.thread("worker", [&] {
                             for (;;) {
                                 model::wait_until(
                                     [&] { return woken.load(relaxed) || over.load(relaxed); });
                                 if (over.load(relaxed)) return;
                                 woken.store(false, relaxed);
                                 if (!idle.retract(0)) static_cast<void>(idle.end_search());
                                 idle.announce(0, false);
                                 all.worker_rests();
                             }
                         });
                         run.thread("launches", [&] {
                             if (idle.claim() != idle_set::none) woken.store(true, relaxed);
                         });
                         run.thread("waits", [&] {
                             require(all.wait_until(weft::never, [] { return true; }), "quiet");
                             over.store(true, relaxed);
                         });
                         run.go();
                     },
                     {.deviations = 3}),
                 bounded);
}

// There a heavy fence is one of the thread's own, and each side needs its.
TEST(quiet, wait_works_without_membarrier) {
    model::has_membarrier = false;
    expect_right(wait_for_quiet(1, false, {.deviations = 3}), bounded);
    model::has_membarrier = true;
}

TEST(quiet, wait_returns_in_random_schedules) {
    expect_right(wait_for_quiet(2, true, {.random_schedules = 10'000}), bounded);
}

}  // namespace
