// weft/sched/blocking.cpp under the interleavings of the callers, the pool's threads, a stop or the
// end of a caller's frame, the time at which idle threads exit, and the pool's end. Laws: a call
// runs once; its caller is woken once and sees what the call did; a call that is stopped before it
// starts does not run; nothing uses a call or the pool after its end; no call is left when all
// threads have exited. Bounded by deviations.
#include "weft/sched/blocking.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/actor.hpp"
#include "model/agent.hpp"
#include "model/names.hpp"
#include "model/spare_threads.hpp"

namespace {

using model::actor;
using model::agent;
using namespace model::names;
using model::fate;
using model::spare_threads;
using weft::blocking_pool;

// Two call, each from a flow of its own; the first ends the pool when both are back.
report call_from_two(unsigned threads, bool time_passes, const model::options& o) {
    return explore(
        [=](execution& run) {
            model::time_has_passed.store(false);
            spare_threads spare(threads);
            std::optional<blocking_pool> p(std::in_place);
            agent a[2];
            model::var<int> ran[2];
            weft::atomic<bool> other{false};
            const auto call = [&](int n) {
                a[n].run([&] {
                    const int answer = weft::run_blocking(
                        [&, n] {
                            ran[n].write(ran[n].read() + 1);
                            return n + 10;
                        },
                        *p);
                    require(answer == n + 10 && ran[n].read() == 1, "it has run once");
                });
            };
            run.thread("owner", [&] {
                call(0);
                model::wait_until([&] { return other.load(std::memory_order_acquire); });
                p.reset();
                spare.leave();
            });
            run.thread("caller", [&] {
                call(1);
                other.store(true, std::memory_order_release);
            });
            for (unsigned n = 0; n != threads; ++n) run.thread("spare", [&, n] { spare.be(n); });
            if (time_passes) run.thread("clock", [] { model::let_time_pass(); });
            run.go();
            for (const agent& each : a) each.check();
        },
        o);
}

TEST(blocking, runs_each_call_once) {
    expect_right(call_from_two(1, false, {.deviations = 2}), bounded);
    expect_right(call_from_two(2, false, {.deviations = 1}), bounded);
}

TEST(blocking, runs_each_call_once_in_random_schedules) {
    expect_right(call_from_two(2, true, {.random_schedules = 10'000}), bounded);
}

// Where no thread can be started, the caller runs the call itself.
TEST(blocking, runs_a_call_in_the_caller_when_no_thread_starts) {
    expect_right(call_from_two(0, false, {.deviations = 3}), bounded);
}

// One thread, which exits when it has been idle; it must not exit beside a call.
report call_when_time_passes(const model::options& o) {
    return explore(
        [](execution& run) {
            model::time_has_passed.store(false);
            spare_threads spare(2);
            std::optional<blocking_pool> p(std::in_place);
            agent a;
            run.thread("owner", [&] {
                a.run([&] {
                    for (int n = 0; n != 2; ++n)
                        require(weft::run_blocking([=] { return n; }, *p) == n, "it has run");
                });
                p.reset();
                spare.leave();
            });
            for (unsigned n = 0; n != 2; ++n) run.thread("spare", [&, n] { spare.be(n); });
            run.thread("clock", [] { model::let_time_pass(); });
            run.go();
            a.check();
        },
        o);
}

TEST(blocking, loses_no_call_when_an_idle_thread_exits) {
    expect_right(call_when_time_passes({.deviations = 1}), bounded);
    expect_right(call_when_time_passes({.random_schedules = 10'000}), bounded);
}

// A caller's wait ends otherwise while another call has the only thread, or has had it.
report end_a_wait(fate f, const model::options& o) {
    return explore(
        [=](execution& run) {
            model::time_has_passed.store(false);
            spare_threads spare(1);
            std::optional<blocking_pool> p(std::in_place);
            actor who;
            model::var<int> ran;
            weft::atomic<bool> posted_ran{false};
            run.thread("owner", [&] {
                require(p->post([&] { posted_ran.store(true, std::memory_order_relaxed); }),
                        "there is a thread");
                {
                    auto op = weft::async_run_blocking([&] { ran.write(ran.read() + 1); }, *p);
                    static_cast<void>(who.wait([&](weft::waiter& w) { return op.start(w); }, f));
                }
                // Either it has run, or it never will: a later run would race.
                const int times = ran.read();
                require(times <= 1, "not twice");
                ran.write(times + 10);
                model::wait_until([&] { return posted_ran.load(std::memory_order_relaxed); });
                p.reset();
                require(ran.read() == times + 10, "nor afterwards");
                spare.leave();
            });
            run.thread("spare", [&] { spare.be(0); });
            run.go();
            who.check();
        },
        o);
}

TEST(blocking, does_not_start_a_call_whose_wait_has_ended) {
    for (const fate f : {fate::stop, fate::deadline, fate::both, fate::end})
        expect_right(end_a_wait(f, {.deviations = 3}), bounded);
}

// A posted call, which has no waiter, runs before the pool is destroyed, whichever thread is late.
TEST(blocking, runs_posted_calls_before_the_pool_is_destroyed) {
    expect_right(
        explore(
            [](execution& run) {
                model::time_has_passed.store(false);
                spare_threads spare(2);
                std::optional<blocking_pool> p(std::in_place);
                model::var<int> ran[2];
                weft::atomic<int> count{0};
                run.thread("owner", [&] {
                    for (int n = 0; n != 2; ++n)
                        require(p->post([&, n] {
                            ran[n].write(1);
                            count.fetch_add(1, std::memory_order_relaxed);
                        }),
                                "there is a thread");
                    model::wait_until([&] { return count.load(std::memory_order_relaxed) == 2; });
                    p.reset();
                    require(ran[0].read() + ran[1].read() == 2, "both are seen");
                    spare.leave();
                });
                for (unsigned n = 0; n != 2; ++n) run.thread("spare", [&, n] { spare.be(n); });
                run.go();
            },
            {.deviations = 1}),
        bounded);
}

}  // namespace
