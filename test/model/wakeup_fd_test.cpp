// weft/io/detail/wakeup_fd.hpp and .cpp: wakers beside a driver that checks for work and sleeps,
// and beside a foreign loop that sleeps on the descriptor, which is a real one.
#include "weft/io/detail/wakeup_fd.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"
#include "test/support/readable.hpp"

namespace {

using namespace model::names;
using weft::detail::wakeup_fd;

constexpr auto relaxed = std::memory_order_relaxed;

struct world {
    wakeup_fd fd;
    weft::atomic<int> work{0};
};

enum class manner {
    as_told,
    sleeps_without_a_look,  // wrong: ignores a wake that came before
};

// As driver_poll: checks for `all` pieces of work, and sleeps when there is none.
void drive(world& w, int all, manner how) {
    while (w.work.load(relaxed) != all) {
        const bool asleep = w.fd.begin_sleep() || how == manner::sleeps_without_a_look;
        if (asleep) model::wait_until([&] { return weft::testing::readable(w.fd.number()); });
        const bool told = weft::testing::readable(w.fd.number());
        w.fd.end_sleep();
        if (told) w.fd.drain();
    }
}

report wake(int wakers, manner how, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            run.thread("driver", [&] { drive(w, wakers, how); });
            for (int i = 0; i != wakers; ++i)
                run.thread("waker", [&] {
                    w.work.fetch_add(1, relaxed);
                    w.fd.wake();
                });
            run.go();
        },
        o);
}

TEST(wakeup_fd, loses_no_wake_of_a_driver_falling_asleep) {
    expect_right(wake(1, manner::as_told, {.deviations = 20}));
    expect_right(wake(2, manner::as_told, {.deviations = 4}), bounded);
}

TEST(wakeup_fd, checker_finds_lost_wake_without_a_final_check) {
    expect_found(wake(1, manner::sleeps_without_a_look, {.deviations = 3}), "deadlock");
}

// From then on each wake is delivered, and so is the wake that came before.
TEST(wakeup_fd, notifies_a_foreign_loop_of_each_wake) {
    const auto foreign = [](execution& run) {
        world w;
        run.thread("host", [&] {
            w.fd.always_tell();
            for (;;) {
                w.fd.clear();
                if (w.work.load(relaxed) == 2) return;
                model::wait_until([&] { return weft::testing::readable(w.fd.number()); });
            }
        });
        for (int i = 0; i != 2; ++i)
            run.thread("waker", [&] {
                w.work.fetch_add(1, relaxed);
                w.fd.wake();
            });
        run.go();
    };
    expect_right(explore(foreign, {.deviations = 4}), bounded);
}

}  // namespace
