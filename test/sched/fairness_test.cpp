// No source of work hides another: what was put into a loop, a pool or a strand waits for some
// turns of what is there already, and no more, however busy that is. Turns are counted and not
// timed, and everything in a case except its start happens on one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/strand.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr long give_up = 100'000;  // turns: it will never run

// Counts the turns of a function that posts itself again and again, until `over` is set or the
// limit of turns is reached.
struct busy_function {
    long turns = 0;
    bool over = false;
    std::function<void()> on_turn = [] {};
    std::latch ended{1};

    template <class On>
    void begin(On& on) {
        on.post(again<On>{*this, on});
    }
    template <class On>
    struct again {
        busy_function& b;
        On& on;
        void operator()() const {
            ++b.turns;
            b.on_turn();
            if (b.over || b.turns == give_up)
                b.ended.count_down();
            else
                on.post(again{b, on});
        }
    };
};

// Posts f from a thread that is none of `on`, and returns when that is done.
template <class On, class F>
void post_from_outside(On& on, F f) {
    std::thread([&] { on.post(f); }).join();
}

TEST(fairness, a_loop_checks_remote_posts_once_in_sixty_four_turns) {
    loop l;
    busy_function busy;
    long ran_at = 0;
    busy.on_turn = [&] {
        if (busy.turns != 1000) return;
        post_from_outside(l, [&] {
            ran_at = busy.turns;
            busy.over = true;
        });
    };
    busy.begin(l);
    l.run();
    EXPECT_TRUE(busy.over);
    EXPECT_LE(ran_at - 1000, 2 * 64);
}

TEST(fairness, a_loop_fires_due_timers_however_busy_it_is) {
    loop l;
    busy_function busy;
    std::vector<fiber> yielding;
    for (int n = 0; n != 3; ++n)
        yielding.emplace_back(
            [&] {
                while (!busy.over) this_fiber::yield();
            },
            fiber_options{.on = l});
    long due_at = 0;
    time_point until{};  // still read after the sleeper has ended
    fiber sleeper(
        [&] {
            until = after(now(), 20ms);
            busy.on_turn = [&] {
                if (due_at == 0 && steady_now() >= after(until, 1ms)) due_at = busy.turns;
                if (busy.turns == give_up - 1) busy.turns = 1;  // until its time has come
            };
            this_fiber::sleep_until(until);
            busy.over = true;
        },
        {.on = l});
    busy.begin(l);
    l.run();
    EXPECT_LE(due_at == 0 ? 0 : busy.turns - due_at, 2 * 64);
}

TEST(fairness, a_worker_runs_its_oldest_entry_once_in_ten_milliseconds) {
    pool p(1);
    busy_function busy;
    long first_ran_at = give_up;
    long second_due_at = 0;
    long second_ran_at = give_up;
    time_point second_due{};  // read after the first has run
    busy.on_turn = [&] {
        if (second_due_at != 0 || first_ran_at == give_up) return;
        if (steady_now() >= second_due) second_due_at = busy.turns;
        if (busy.turns == give_up - 1) busy.turns = 1;  // until its time has come
    };
    p.post([&] {
        p.post([&] {
            first_ran_at = busy.turns;
            second_due = after(steady_now(), 10ms);
        });
        p.post([&] {
            second_ran_at = busy.turns;
            busy.over = true;
        });
        busy.begin(p);  // the latest is started first
    });
    busy.ended.wait();
    EXPECT_LE(first_ran_at, 2 * 256);
    EXPECT_LE(second_due_at == 0 ? 0 : second_ran_at - second_due_at, 2 * 256);
}

TEST(fairness, a_worker_checks_its_inbox_once_in_sixteen_pops) {
    pool p(1);
    busy_function busy;
    long ran_at = give_up;
    busy.on_turn = [&] {
        if (busy.turns != 1000) return;
        post_from_outside(p, [&] {
            ran_at = busy.turns;
            busy.over = true;
        });
    };
    busy.begin(p);
    busy.ended.wait();
    EXPECT_LE(ran_at - 1000, 2 * 16);
}

TEST(fairness, neither_inbox_nor_deque_of_a_worker_starves_the_other) {
    pool p(1);
    busy_function busy;
    long ran_at = give_up;
    std::atomic<int> from_outside = 0;
    busy.on_turn = [&] {  // the inbox is never empty, and the latest is always this one
        if (busy.turns <= 600) post_from_outside(p, [&] { ++from_outside; });
    };
    p.post([&] {
        p.post([&] {
            ran_at = busy.turns;
            busy.over = true;
        });
        busy.begin(p);
    });
    busy.ended.wait();
    EXPECT_LE(ran_at, 2 * 256);
    EXPECT_GE(from_outside, 1);
}

// A strand with a fiber in it that yields until `over` is set or the limit of turns is reached.
struct busy_strand {
    strand on;
    std::atomic<bool> counts;  // its turns
    long turns = 0;
    fiber f;

    busy_strand(pool& p, const std::atomic<bool>& over, bool from_the_start = true)
        : on(p),
          counts(from_the_start),
          f(
              [this, &over] {
                  while (!over && (!counts || ++turns != give_up)) this_fiber::yield();
              },
              {.on = on}) {}
};

TEST(fairness, as_many_busy_strands_as_workers_do_not_starve_others) {
    for (const unsigned workers : {1u, 2u}) {
        pool p(workers);
        std::atomic<bool> over = false;
        std::vector<std::unique_ptr<busy_strand>> busy;
        for (unsigned n = 0; n != workers; ++n)
            busy.push_back(std::make_unique<busy_strand>(p, over, false));
        strand other(p);
        std::atomic<int> left = 2;
        const auto ran = [&] {
            if (--left == 0) over = true;
        };
        p.post(ran);
        other.post(ran);
        // Counted from here: this thread may have waited for a processor before it could post.
        for (const auto& b : busy) b->counts = true;
        for (const auto& b : busy) {
            b->f.join();
            EXPECT_LT(b->turns, give_up);
        }
    }
}

TEST(fairness, busy_strands_on_one_worker_share_its_turns) {
    constexpr int count = 8;
    pool p(1);
    std::atomic<bool> over = false;
    std::vector<std::unique_ptr<busy_strand>> busy;
    std::latch made(1);
    p.post([&] { made.wait(); });  // so that all start together
    for (int n = 0; n != count; ++n) busy.push_back(std::make_unique<busy_strand>(p, over));
    busy_strand& last = *busy.back();
    std::vector<long> others;
    made.count_down();
    fiber watch(
        [&] {
            while (last.turns < 64 * 100) this_fiber::yield();
            for (const auto& b : busy) others.push_back(b->turns);
            over = true;
        },
        {.on = last.on});
    watch.join();
    for (const auto& b : busy) b->f.join();
    for (const long turns : others) {
        EXPECT_GE(turns, 64 * 90);
        EXPECT_LE(turns, 64 * 220);
    }
}

TEST(fairness, a_strand_checks_remote_posts_once_in_sixty_four_turns) {
    pool p(1);
    strand s(p);
    busy_function busy;
    long ran_at = give_up;
    busy.on_turn = [&] {
        if (busy.turns != 1000) return;
        post_from_outside(s, [&] {
            ran_at = busy.turns;
            busy.over = true;
        });
    };
    busy.begin(s);
    busy.ended.wait();
    EXPECT_LE(ran_at - 1000, 2 * 64);
}

// A turn of a strand is 64 turns of its flows: a worker makes fewer of such turns between two
// checks.
TEST(fairness, a_worker_with_long_turns_still_checks_its_timers) {
    pool p(1);
    strand s(p);
    std::atomic<bool> over = false;
    // Of the one worker's thread, like all that follows.
    long turns = 0;
    long late_since = 0;
    time_point due = never;
    fiber busy(
        [&] {
            for (; !over; ++turns) {
                const time_point until = after(steady_now(), 20us);
                while (steady_now() < until) {
                }
                if (due != never && late_since == 0 && until >= after(due, 1ms)) late_since = turns;
                this_fiber::yield();
            }
        },
        {.on = s});
    long worst = 0;
    fiber sleeper(
        [&] {
            this_fiber::sleep_for(20ms);  // until the iterations have their full length
            for (int n = 0; n != 5; ++n) {
                late_since = 0;
                due = after(now(), 5ms);
                this_fiber::sleep_until(due);
                if (late_since != 0) worst = std::max(worst, turns - late_since);
            }
            over = true;
        },
        {.on = p});
    sleeper.join();
    busy.join();
    EXPECT_LE(worst, 4 * 64);
}

}  // namespace
}  // namespace weft
