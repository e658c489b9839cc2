// weft/sched/strand.cpp under the interleavings of threads that post, of a pool's threads that run
// the strand's turns, of a thread that waits for the strand or ends it, and of the timer that fires
// for its deadlines (weft/sched/timer.cpp). A queue represents the pool (crew.hpp). Laws: what is
// posted runs once, never two at a time, in the order of each poster, and sees what ran before; the
// strand is idle only when nothing runs or is live in it, and may be destroyed then. Bounded by
// deviations.
#include "weft/sched/strand.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/agent.hpp"
#include "model/crew.hpp"
#include "model/names.hpp"

namespace {

using model::agent;
using namespace model::names;
using model::crew;
using weft::pool;
using weft::strand;

// What the functions in a strand share, with no lock.
struct shared {
    model::var<int> ran{0};
    int last[2] = {0, 0};

    void run(int poster, int number) {
        ran.write(ran.read() + 1);
        require(last[poster] == number - 1, "the functions of a poster run in order, each once");
        last[poster] = number;
    }
};

report post_from_two(int each, unsigned workers, const model::options& o) {
    return explore(
        [=](execution& run) {
            crew c(2);
            pool p;
            shared s;
            {
                strand on(p);
                for (int n = 0; n != 2; ++n)
                    run.thread("poster", [&, n] {
                        for (int i = 1; i <= each; ++i) on.post([&s, n, i] { s.run(n, i); });
                        c.leave();
                    });
                for (unsigned n = 0; n != workers; ++n) run.thread("worker", [&] { c.work(); });
                run.go();
            }
            require(s.ran.read() == 2 * each, "all that was posted has run");
        },
        o);
}

TEST(strand, runs_posted_functions_once_in_order_one_at_a_time) {
    expect_right(post_from_two(1, 1, {.deviations = 3}), bounded);
    expect_right(post_from_two(1, 2, {.deviations = 2}), bounded);
    expect_right(post_from_two(2, 2, {.deviations = 1}), bounded);
}

TEST(strand, runs_posted_functions_in_random_schedules) {
    expect_right(post_from_two(3, 3, {.random_schedules = 5'000}), bounded);
}

// A fiber that has posted, and another thread beside it: the end waits for all of it.
report end_after_posts(unsigned workers, const model::options& o) {
    return explore(
        [=](execution& run) {
            crew c(1);
            pool p;
            shared s;
            agent a;
            auto on = std::make_unique<strand>(p);
            run.thread("owner", [&] {
                a.run([&] {
                    for (int i = 1; i <= 2; ++i) on->post([&s, i] { s.run(0, i); });
                    on.reset();
                    require(s.ran.read() == 2, "what was posted before the end has run");
                });
                c.leave();
            });
            for (unsigned n = 0; n != workers; ++n) run.thread("worker", [&] { c.work(); });
            run.go();
            a.check();
        },
        o);
}

TEST(strand, destructor_waits_for_all_posted_functions) {
    expect_right(end_after_posts(1, {.deviations = 4}), bounded);
    expect_right(end_after_posts(2, {.deviations = 2}), bounded);
}

// Two wait for it to be idle, each of which has posted.
TEST(strand, wait_until_idle_returns_for_all_waiters) {
    expect_right(explore(
                     [](execution& run) {
                         crew c(2);
                         pool p;
                         agent a[2];
                         model::var<int> ran[2];
                         {
                             strand on(p);
                             for (int n = 0; n != 2; ++n)
                                 run.thread("waits", [&, n] {
                                     a[n].run([&] {
                                         on.post([&, n] { ran[n].write(1); });
                                         on.wait_until_idle();
                                         require(ran[n].read() == 1, "its own has run");
                                     });
                                     c.leave();
                                 });
                             run.thread("worker", [&] { c.work(); });
                             run.go();
                         }
                         for (const agent& each : a) each.check();
                     },
                     {.deviations = 2}),
                 bounded);
}

// A flow is live in the strand from one turn to the next; another thread posts the second turn.
TEST(strand, is_not_idle_while_a_flow_is_live_in_it) {
    static constexpr auto nothing = [](weft::flow&) noexcept {};
    static constexpr weft::flow_kind kind = {"a test's",
                                             nullptr,
                                             nothing,
                                             nothing,
                                             nothing,
                                             [](const weft::flow&) noexcept { return weft::agent_info{"a test's", 0, nullptr}; }};
    expect_right(
        explore(
            [](execution& run) {
                crew c(2);
                pool p;
                agent a;
                weft::flow f(kind);
                model::var<int> lives{0};
                weft::atomic<bool> began{false};
                {
                    strand on(p);
                    run.thread("begins", [&] {
                        a.run([&] {
                            on.post([&] {
                                lives.write(1);
                                on.fixed_executor()->register_flow(f);
                                began.store(true, std::memory_order_release);
                            });
                            on.wait_until_idle();
                            require(lives.read() == 0, "it has gone");
                        });
                        c.leave();
                    });
                    run.thread("ends", [&] {
                        model::wait_until([&] { return began.load(std::memory_order_relaxed); });
                        on.post([&] {
                            on.fixed_executor()->deregister_flow(f);
                            lives.write(0);
                        });
                        c.leave();
                    });
                    run.thread("worker", [&] { c.work(); });
                    run.go();
                }
                a.check();
            },
            {.deviations = 3}),
        bounded);
}

// A frame that is being destroyed cannot wait: it takes the strand from the pool's threads. What
// has not run then is destroyed, and what has, ran before.
TEST(strand, destructor_discards_unrun_posts_in_an_unwinding_flow) {
    struct counted {
        model::var<int>* ended;
        explicit counted(model::var<int>& e) : ended(&e) {}
        counted(counted&& other) noexcept : ended(std::exchange(other.ended, nullptr)) {}
        ~counted() {
            if (ended != nullptr) ended->write(ended->read() + 1);
        }
        void operator()() const {}
    };
    expect_right(explore(
                     [](execution& run) {
                         crew c(1);
                         pool p;
                         agent a;
                         model::var<int> ended;
                         auto on = std::make_unique<strand>(p);
                         run.thread("owner", [&] {
                             a.run([&] {
                                 on->post(counted(ended));
                                 on->post(counted(ended));
                                 weft::detail::flow_here()->ending = true;
                                 on.reset();
                                 weft::detail::flow_here()->ending = false;
                                 require(ended.read() == 2, "nothing is left of what was posted");
                             });
                             c.leave();
                         });
                         for (int n = 0; n != 2; ++n) run.thread("worker", [&] { c.work(); });
                         run.go();
                     },
                     {.deviations = 2}),
                 bounded);
}

// The alarm delivers a deadline in the strand, and the next deadline as well. The strand may end
// while the alarm fires.
report ring(bool ends, const model::options& o) {
    struct moment : weft::timer_node {
        model::var<int> fired{0};
        weft::executor* strand = nullptr;
    };
    return explore(
        [=](execution& run) {
            crew c(1);
            pool p;
            moment d;
            agent a;
            shared s;
            d.deadline = weft::time_point::min();
            d.fire = [](weft::timer_node& t) noexcept {
                auto& self = static_cast<moment&>(t);
                self.fired.write(self.fired.read() + 1);
                if (self.fired.read() == 1) self.strand->arm(self);
            };
            auto on = std::make_unique<strand>(p);
            weft::executor& inside = *on->fixed_executor();
            d.strand = &inside;
            run.thread("owner", [&] {
                a.run([&] {
                    on->post([&] {
                        s.run(0, 1);
                        inside.arm(d);
                    });
                    on->post([&] {
                        s.run(0, 2);
                        if (!ends) return;
                        if (d.armed) inside.disarm(d);
                    });
                    if (ends) on.reset();
                });
                c.leave();
            });
            run.thread("worker", [&] { c.work(); });
            run.thread("clock", [&] { c.clock.run(); });
            run.go();
            c.drain();
            if (!ends) require(d.fired.read() == 2, "each deadline is told of, once");
            on.reset();
            c.drain();
            require(!c.clock.has_timers(), "the alarm has gone with it");
        },
        o);
}

TEST(strand, wakes_for_its_deadlines) { expect_right(ring(false, {.deviations = 2}), bounded); }

TEST(strand, can_be_destroyed_while_its_timer_fires) {
    expect_right(ring(true, {.deviations = 2}), bounded);
}

}  // namespace
