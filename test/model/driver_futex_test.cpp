// weft/sched/driver_futex.cpp under the interleavings of the owner, which waits, of threads that
// wake the driver, of the time point at which a wait's deadline passes, and of another driver that
// replaces it. Laws: a wake after a store makes the owner see the store; the owner may destroy the
// driver once it has seen the wake. The walks are complete, except those that a comment calls
// bounded, by their deviations.
#include "weft/sched/driver_futex.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::driver;
using weft::driver_futex;
using weft::never;

constexpr auto relaxed = std::memory_order_relaxed;

// What a waker stores before its wake. Relaxed: the driver makes the owner see the store.
struct news {
    weft::atomic<bool> told{false};

    void tell(driver& d) {
        told.store(true, relaxed);
        d.wake();
    }
    bool is_there() const { return told.load(relaxed); }
};

weft::time_point soon() { return weft::after(weft::steady_now(), std::chrono::hours(1)); }

bool is_readable(int fd) {
    ::pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

// Two threads wake the driver. The deadline of the owner's first wait, if it has one, passes at any
// time.
report wait_for_two(bool with_a_deadline, const model::options& o) {
    return explore(
        [=](execution& run) {
            model::time_has_passed.store(false);
            driver_futex d;
            news of[2];
            run.thread("owner", [&] {
                if (with_a_deadline) static_cast<void>(d.wait(soon()));
                while (!of[0].is_there() || !of[1].is_there()) static_cast<void>(d.wait(never));
            });
            for (news& n : of) run.thread("waker", [&] { n.tell(d); });
            if (with_a_deadline) run.thread("clock", [] { model::let_time_pass(); });
            run.go();
        },
        o);
}

TEST(driver_futex, loses_no_wake) { expect_right(wait_for_two(false, {.deviations = 4}), bounded); }

TEST(driver_futex, loses_no_wake_when_a_wait_times_out) {
    expect_right(wait_for_two(true, {.deviations = 2}), bounded);
}

TEST(driver_futex, loses_no_wake_when_checked_after_clearing) {
    expect_right(explore(
        [](execution& run) {
            driver_futex d;
            news n;
            run.thread("owner", [&] {
                d.clear_wake();
                while (!n.is_there()) static_cast<void>(d.wait(never));
            });
            run.thread("waker", [&] { n.tell(d); });
            run.go();
        },
        {.deviations = 20}));
}

// A wait that returns by a wake shows that the waker's call has ended, as far as the driver is
// concerned.
TEST(driver_futex, can_be_destroyed_once_the_wake_is_seen) {
    expect_right(explore(
        [](execution& run) {
            auto d = std::make_unique<driver_futex>();
            run.thread("owner", [&] {
                static_cast<void>(d->wait(never));
                d.reset();
            });
            run.thread("waker", [at = d.get()] { at->wake(); });
            run.go();
        },
        {.deviations = 20}));
}

// The owner, which has checked before and waits by the second driver from then on, misses no wake
// of the first driver.
TEST(driver_futex, forwards_wakes_to_its_replacement) {
    expect_right(explore(
                     [](execution& run) {
                         driver_futex first;
                         driver_futex second;
                         news of[2];
                         run.thread("owner", [&] {
                             bool all = of[0].is_there() && of[1].is_there();
                             model::require(first.give_way(&second), "nobody watches it");
                             while (!all) {
                                 static_cast<void>(second.wait(never));
                                 all = of[0].is_there() && of[1].is_there();
                             }
                         });
                         for (news& n : of) run.thread("waker", [&] { n.tell(first); });
                         run.go();
                     },
                     {.deviations = 3}),
                 bounded);
}

// A foreign loop sleeps on the descriptor: the descriptor is made at any time, and is readable for
// each wake.
report watch_the_handle(bool forgets_first, const model::options& o) {
    return explore(
        [=](execution& run) {
            driver_futex d;
            news of[2];
            run.thread("foreign loop", [&] {
                const int fd = d.native_handle();
                while (true) {
                    if (forgets_first) d.clear_wake();
                    const bool all = of[0].is_there() && of[1].is_there();
                    if (all) return;
                    if (!forgets_first) d.clear_wake();  // wrong: of a wake that came meanwhile
                    model::wait_until([&] { return is_readable(fd); });
                }
            });
            for (news& n : of) run.thread("waker", [&] { n.tell(d); });
            run.go();
        },
        o);
}

TEST(driver_futex, fd_is_readable_for_a_wake_before_its_creation) {
    expect_right(explore(
        [](execution& run) {
            driver_futex d;
            news n;
            run.thread("foreign loop", [&] {
                if (n.is_there()) return;
                const int fd = d.native_handle();
                model::wait_until([&] { return is_readable(fd); });
            });
            run.thread("waker", [&] { n.tell(d); });
            run.go();
        },
        {.deviations = 20}));
}

TEST(driver_futex, fd_stays_readable_until_the_wake_is_cleared) {
    expect_right(watch_the_handle(true, {.deviations = 4}), bounded);
    model::expect_found(watch_the_handle(false, {}), "deadlock: foreign loop");
}

}  // namespace
