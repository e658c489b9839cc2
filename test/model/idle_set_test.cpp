// weft/queue/detail/idle_set.hpp under the interleavings of a producer and of workers that act as a
// pool's workers do (sched/pool.cpp). The box represents all places where work is stored.
#include "weft/queue/detail/idle_set.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::idle_set;

constexpr auto relaxed = std::memory_order_relaxed;

enum class manner {
    as_told,
    sleeps_without_a_look,  // wrong
    tells_before,           // wrong: claims, and then puts
};

struct work {
    work(unsigned workers, int items, manner m) : idle(workers), left(items), how(m) {}

    void produce(int items) {
        for (int n = 0; n != items; ++n) {
            if (how == manner::tells_before) wake(idle.claim());
            box.fetch_add(1, relaxed);
            if (how != manner::tells_before) wake(idle.claim());
        }
    }

    void be_worker(unsigned i) {
        bool searching = false;
        while (!over.load(relaxed)) {
            if (!searching) searching = idle.begin_search();
            if (searching && take()) {
                searching = false;
                const bool was_last = idle.end_search();
                if (was_last) wake(idle.claim());
                continue;
            }
            idle.announce(i, searching);
            if (how != manner::sleeps_without_a_look && idle.searching_count() == 0 &&
                box.load(relaxed) != 0) {
                searching = !idle.retract(i);
                continue;
            }
            model::wait_until([&] { return woken[i].load(relaxed) != 0 || over.load(relaxed); });
            woken[i].store(0, relaxed);
            searching = !idle.retract(i);
        }
    }

    bool take() {
        int n = box.load(relaxed);
        if (n == 0 || !box.compare_exchange_strong(n, n - 1, relaxed, relaxed)) return false;
        if (left.fetch_sub(1, relaxed) == 1) over.store(true, relaxed);
        return true;
    }
    void wake(unsigned i) {
        if (i != idle_set::none) woken[i].store(1, relaxed);
    }

    idle_set idle;
    weft::atomic<int> box{0};
    weft::atomic<int> left;
    weft::atomic<int> woken[2] = {};
    weft::atomic<bool> over{false};
    const manner how;
};

report run_work(unsigned workers, int items, manner how, const model::options& o) {
    return explore(
        [=](execution& run) {
            work w(workers, items, how);
            for (unsigned i = 0; i != workers; ++i)
                run.thread("worker", [&w, i] { w.be_worker(i); });
            run.thread("producer", [&] { w.produce(items); });
            run.go();
            model::require(w.box.load(relaxed) == 0, "all was taken");
        },
        o);
}

TEST(idle_set, loses_no_wake) {
    expect_right(run_work(1, 1, manner::as_told, {.deviations = 4}), bounded);
    expect_right(run_work(1, 2, manner::as_told, {.deviations = 3}), bounded);
    expect_right(run_work(2, 2, manner::as_told, {.deviations = 2}), bounded);
}

TEST(idle_set, loses_no_wake_in_random_schedules) {
    expect_right(run_work(2, 3, manner::as_told, {.random_schedules = 10'000}), bounded);
}

TEST(idle_set, checker_finds_lost_wake_without_a_second_check) {
    expect_found(run_work(1, 1, manner::sleeps_without_a_look, {}), "");
}

TEST(idle_set, checker_finds_lost_wake_when_notified_before_work) {
    expect_found(run_work(1, 1, manner::tells_before, {}), "");
}

}  // namespace
