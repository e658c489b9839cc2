// weft/sched/loop.cpp over weft/sched/driver_futex.cpp, under the interleavings of the thread that
// runs the loop, of threads that post to the loop, wake it and stop it, and of its end. Laws: what
// is posted runs once, in the order of each poster, and sees what was written before; a wake and a
// stop end a call that sleeps; a loop that has finished its work may end, although the calls that
// notified it have not returned. Bounded by deviations, except the walks that a comment calls
// complete.
#include "weft/sched/loop.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>

#include "model/names.hpp"
#include "weft/sched/driver_futex.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace {

using namespace model::names;
using weft::driver_futex;
using weft::loop;
using weft::never;

constexpr auto relaxed = std::memory_order_relaxed;

// A wake comes after the driver has been made, and its call ends before the driver is destroyed, in
// the sense of the memory model.
class lived_in final : public weft::driver {
public:
    lived_in() { life_.write(0); }
    ~lived_in() override { life_.write(1); }
    bool wait(weft::time_point until) noexcept override { return sleeps_.wait(until); }
    void wake() noexcept override {
        static_cast<void>(life_.read());
        sleeps_.wake();
        static_cast<void>(life_.read());
    }
    void clear_wake() noexcept override { sleeps_.clear_wake(); }
    weft::time_point now() const noexcept override { return sleeps_.now(); }
    int native_handle() noexcept override { return sleeps_.native_handle(); }
    bool give_way(driver* d) noexcept override { return sleeps_.give_way(d); }

private:
    driver_futex sleeps_;
    model::var<int> life_;
};

std::unique_ptr<loop> new_loop() {
    model::time_has_passed.store(false);
    auto l = std::make_unique<loop>(std::make_unique<lived_in>());
    l->on_deadlock(nullptr);
    return l;
}

// What is posted to a loop, and what it finds there. Plain: on the loop's thread.
struct work {
    model::var<int> written[2][4];
    int last[2] = {0, 0};
    int count = 0;

    void post(loop& l, int poster, int number) {
        written[poster][number].write(number);
        l.post([this, poster, number] {
            require(written[poster][number].read() == number, "what was written before is seen");
            require(last[poster] == number - 1, "in order, and once");
            last[poster] = number;
            ++count;
        });
    }
};

report post_from_two(int each, const model::options& o) {
    return explore(
        [=](execution& run) {
            auto l = new_loop();
            work w;
            run.thread("owner", [&] {
                while (w.count != 2 * each) static_cast<void>(l->run_once(never));
                l.reset();
            });
            for (int n = 0; n != 2; ++n)
                run.thread("poster", [&, n, at = l.get()] {
                    for (int i = 1; i <= each; ++i) w.post(*at, n, i);
                });
            run.go();
        },
        o);
}

TEST(loop, runs_posted_functions_and_can_be_destroyed_then) {
    expect_right(post_from_two(1, {.deviations = 3}), bounded);
}

TEST(loop, runs_posted_functions_in_random_schedules) {
    expect_right(post_from_two(3, {.random_schedules = 5'000}), bounded);
}

// The calls that notify the owner of a store. The store is relaxed, so the loop orders it.
enum class told_by { a_wake, a_stop, both };

report tell(told_by how, const model::options& o) {
    return explore(
        [=](execution& run) {
            auto l = new_loop();
            weft::atomic<int> told{0};
            const int tellers = how == told_by::both ? 2 : 1;
            run.thread("owner", [&] {
                while (told.load(relaxed) != tellers) static_cast<void>(l->run_once(never));
            });
            if (how != told_by::a_stop)
                run.thread("wakes", [&, at = l.get()] {
                    told.fetch_add(1, relaxed);
                    at->wake();
                });
            if (how != told_by::a_wake)
                run.thread("stops", [&, at = l.get()] {
                    told.fetch_add(1, relaxed);
                    at->stop();
                });
            run.go();
        },
        o);
}

TEST(loop, loses_no_wake_and_no_stop) {
    expect_right(tell(told_by::a_wake, {.deviations = 5}), bounded);
    expect_right(tell(told_by::a_stop, {.deviations = 5}), bounded);
    expect_right(tell(told_by::both, {.deviations = 2}), bounded);
}

// The end of the call is the owner's only sign of the wake or stop. Before, the owner has run the
// loop until idle.
TEST(loop, can_be_destroyed_after_a_stop_or_wake) {
    for (const bool by_wake : {false, true})
        expect_right(explore(
                         [=](execution& run) {
                             auto l = new_loop();
                             run.thread("owner", [&] {
                                 // The call may see the driver's part of the wake or stop, and
                                 // clear it.
                                 require(l->run_until_idle() == 0, "nothing is to be run");
                                 require(!l->run_once(never), "nor was then");
                                 l.reset();
                             });
                             run.thread("tells",
                                        [=, at = l.get()] { by_wake ? at->wake() : at->stop(); });
                             run.go();
                         },
                         {.deviations = 4}),
                     bounded);
}

// A run() of a loop with a live flow returns on a stop only, although the loop is woken as well.
TEST(loop, run_with_a_live_flow_returns_only_on_a_stop) {
    static constexpr auto nothing = [](weft::flow&) noexcept {};
    static constexpr weft::flow_kind kind = {"a test's",
                                             nullptr,
                                             nothing,
                                             nothing,
                                             nothing,
                                             [](const weft::flow&) noexcept { return weft::agent_info{"a test's", 0, nullptr}; }};
    expect_right(explore(
                     [](execution& run) {
                         auto l = new_loop();
                         weft::flow f(kind);
                         weft::atomic<bool> stops{false};
                         run.thread("owner", [&] {
                             l->register_flow(f);
                             l->run();
                             require(stops.load(relaxed), "by nothing but the stop");
                             l->deregister_flow(f);
                         });
                         run.thread("wakes", [at = l.get()] { at->wake(); });
                         run.thread("stops", [&, at = l.get()] {
                             stops.store(true, relaxed);
                             at->stop();
                         });
                         run.go();
                     },
                     {.deviations = 3}),
                 bounded);
}

// One wake ends one call: of those that ran nothing there is no second one. The post may end one.
TEST(loop, one_wake_ends_one_call) {
    expect_right(explore(
                     [](execution& run) {
                         auto l = new_loop();
                         work w;
                         weft::atomic<bool> told{false};
                         run.thread("owner", [&] {
                             int empty = 0;
                             while (w.count != 1 || !told.load(relaxed))
                                 if (!l->run_once(never)) ++empty;
                             require(empty <= 1, "a wake ends one call");
                         });
                         run.thread("wakes", [&, at = l.get()] {
                             told.store(true, relaxed);
                             at->wake();
                         });
                         run.thread("posts", [&, at = l.get()] { w.post(*at, 0, 1); });
                         run.go();
                     },
                     {.deviations = 2}),
                 bounded);
}

bool is_readable(int fd) {
    ::pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

// A foreign loop sleeps on the descriptor, and then has it run what is there, without waiting.
TEST(loop, notifies_a_foreign_loop_of_each_post) {
    expect_right(explore(
                     [](execution& run) {
                         auto l = new_loop();
                         work w;
                         run.thread("foreign loop", [&] {
                             const int fd = l->native_handle();
                             for (;;) {
                                 static_cast<void>(l->run_once(l->now()));
                                 if (w.count == 2) break;
                                 if (l->next_deadline() != never) continue;  // more is ready
                                 model::wait_until([=] { return is_readable(fd); });
                             }
                         });
                         for (int n = 0; n != 2; ++n)
                             run.thread("poster", [&, n, at = l.get()] { w.post(*at, n, 1); });
                         run.go();
                     },
                     {.deviations = 2}),
                 bounded);
}

// Another driver replaces the first while others post, wake or stop.
TEST(loop, adopts_another_driver_during_posts_and_wakes) {
    expect_right(explore(
                     [](execution& run) {
                         auto l = new_loop();
                         work w;
                         weft::atomic<bool> told{false};
                         run.thread("owner", [&] {
                             static_cast<void>(l->run_once(l->now()));
                             require(l->adopt(new lived_in), "it gives way");
                             while (w.count != 1 || !told.load(relaxed))
                                 static_cast<void>(l->run_once(never));
                         });
                         run.thread("posts", [&, at = l.get()] { w.post(*at, 0, 1); });
                         run.thread("wakes", [&, at = l.get()] {
                             told.store(true, relaxed);
                             at->wake();
                         });
                         run.go();
                     },
                     {.deviations = 2}),
                 bounded);
}

// Orders nothing.
struct sleepless final : weft::driver {
    bool wait(weft::time_point) noexcept override { return true; }
    void wake() noexcept override {}
    weft::time_point now() const noexcept override { return {}; }
    int native_handle() noexcept override { return -1; }
};

// One thread runs the loop, then another, which sees what ran before: the loop orders the two.
TEST(loop, can_be_run_by_one_thread_after_another) {
    expect_right(explore([](execution& run) {
        auto l = std::make_unique<loop>(std::make_unique<sleepless>());
        model::var<int> ran;
        weft::atomic<bool> handed{false};
        l->post([&] { ran.write(1); });
        run.thread("first", [&] {
            require(l->run_once(never), "what was posted runs");
            handed.store(true, relaxed);
        });
        run.thread("second", [&] {
            model::wait_until([&] { return handed.load(relaxed); });
            static_cast<void>(l->run_once({}));
            require(ran.read() == 1, "it sees what the first did");
        });
        run.go();
    }));
}

// The clock of a virtual loop never sleeps: what is posted to it ends the wait for ever.
TEST(virtual_loop, loses_no_post) {
    expect_right(explore(
                     [](execution& run) {
                         weft::testing::virtual_loop v(1);
                         v.loop().on_deadlock(nullptr);
                         work w;
                         weft::atomic<bool> posted{false};
                         run.thread("owner", [&] {
                             while (w.count != 1) {
                                 const bool is = posted.load(std::memory_order_acquire);
                                 const bool ran = v.loop().run_once(never);
                                 require(ran || !is, "what was posted before runs in this call");
                                 if (!ran) model::spin();
                             }
                         });
                         run.thread("posts", [&] {
                             w.post(v.loop(), 0, 1);
                             posted.store(true, std::memory_order_release);
                         });
                         run.go();
                     },
                     {.deviations = 4}),
                 bounded);
}

}  // namespace
