// weft/io/detail/ring_endings.hpp with wakeup_fd, as driver_uring uses them: threads that close
// leave keys, and the ring's thread takes them between its sleeps. A key that is left behind while
// the thread sleeps is a deadlock. The walks are bounded by deviations: 6 with one closer, 3 with
// two.
#include "weft/io/detail/ring_endings.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"
#include "test/support/readable.hpp"
#include "weft/io/detail/wakeup_fd.hpp"

namespace {

using namespace model::names;
using weft::detail::ring_endings;
using weft::detail::wakeup_fd;

struct world {
    ring_endings endings;
    wakeup_fd wakes;
    std::uint64_t sum = 0;  // of the ring's thread

    // As driver_uring::unwatch().
    void unwatch() {
        for (std::uint64_t key; endings.take(key);) sum += key;
    }
};

enum class manner {
    as_told,
    wakes_before,   // wrong: the wake does not show what is left after it
    does_not_look,  // wrong: sleeps though it was woken
};

report close_beside_sleep(int closers, manner how, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            const std::uint64_t all = closers == 1 ? 1 : 3;
            run.thread("ring", [&] {
                while (w.unwatch(), w.sum != all) {
                    if (w.wakes.begin_sleep() || how == manner::does_not_look)
                        model::wait_until(
                            [&] { return weft::testing::readable(w.wakes.number()); });
                    const bool told = weft::testing::readable(w.wakes.number());
                    w.wakes.end_sleep();
                    if (told) w.wakes.drain();
                }
            });
            for (int i = 0; i != closers; ++i)
                run.thread("closer", [&, i] {
                    if (how == manner::wakes_before) w.wakes.wake();
                    model::require(w.endings.leave(static_cast<std::uint64_t>(i) + 1), "room");
                    if (how != manner::wakes_before) w.wakes.wake();
                });
            run.go();
            model::require(w.endings.count() == 0, "all are taken");
        },
        o);
}

TEST(ring_endings, loses_no_key_added_as_the_thread_falls_asleep) {
    expect_right(close_beside_sleep(1, manner::as_told, {.deviations = 6}), bounded);
    expect_right(close_beside_sleep(2, manner::as_told, {.deviations = 3}), bounded);
}

TEST(ring_endings, checker_finds_lost_key_added_after_its_wake) {
    expect_found(close_beside_sleep(1, manner::wakes_before, {.deviations = 4}), "deadlock");
}

TEST(ring_endings, checker_finds_lost_key_when_slept_without_a_check) {
    expect_found(close_beside_sleep(1, manner::does_not_look, {.deviations = 4}), "deadlock");
}

}  // namespace
