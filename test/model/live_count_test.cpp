// weft/manager/detail/live_count.hpp under the interleavings of two or three that admit, leave,
// close and wait. Tasks are admissions and leaves alone; what a task does between is no part of the
// word.
#include "weft/manager/detail/live_count.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <mutex>

#include "model/actor.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;
using model::fate;
using weft::detail::live_count;
using verdict = live_count::verdict;

constexpr std::size_t no_limit = ~std::size_t{0};

// What a manager's tasks write before they leave, and its destructor afterwards.
struct manager {
    live_count live;
    model::var<int> memory{0};

    bool wait(model::actor& p, fate f = fate::none) {
        struct wait_for {
            manager& m;
            weft::wait_node n;
        } op{*this, weft::wait_node{}};
        if (live.is_empty()) return true;
        return p.wait(
                   [&](weft::waiter& w) {
                       op.n.owner = &w;
                       w.enlist("emptiness", this, &op, [](weft::waiter& gone) noexcept {
                           auto& self = gone.operation<wait_for>();
                           self.m.live.cancel(self.n);
                       });
                       return live.enlist(op.n);
                   },
                   f) == weft::wait_status::woken;
    }
};

// Bounded by deviations, and for three that come once whole.
TEST(live_count, never_exceeds_its_limit_and_refuses_only_at_it) {
    expect_right(explore([](execution& run) {
                     live_count c;
                     weft::atomic<int> living{0};
                     const auto one = [&] {
                         const verdict v = c.admit(2);
                         require(v == verdict::admitted,
                                 "two that have one each do not meet a limit of two");
                         require(living.fetch_add(1) < 2, "it is not passed");
                         living.fetch_sub(1);
                         c.leave();
                     };
                     run.thread("one", one);
                     run.thread("other", [&] {
                         one();
                         one();
                     });
                     run.go();
                     require(c.is_empty(), "all have left");
                 }),
                 bounded);
    expect_right(explore(
        [](execution& run) {
            live_count c;
            std::array<verdict, 3> got{};
            for (std::size_t i = 0; i < got.size(); ++i)
                run.thread("asks", [&, i] { got[i] = c.admit(1); });
            run.go();
            int admitted = 0;
            for (const verdict v : got) admitted += v == verdict::admitted ? 1 : 0;
            require(admitted == 1 && c.count() == 1, "one of three");
        },
        {.deviations = 20}));
}

// A table with one lock, like a shard of task_table: a thread that enters checks the bit, a thread
// that closes walks. Bounded by deviations, because a thread that spins at the lock may always
// check once more.
TEST(live_count, shows_every_entry_to_a_walk_after_the_close) {
    expect_right(explore(
                     [](execution& run) {
                         live_count c;
                         weft::detail::spin_lock lock;
                         bool entered = false, found = false, refused = false;
                         run.thread("spawns", [&] {
                             if (c.admit(no_limit) != verdict::admitted) {
                                 refused = true;
                                 return;
                             }
                             {
                                 const std::lock_guard held(lock);
                                 refused = c.is_closed();
                                 entered = !refused;
                             }
                             if (refused) c.leave();
                         });
                         run.thread("closes", [&] {
                             c.close();
                             const std::lock_guard held(lock);
                             found = entered;
                         });
                         run.go();
                         require(refused != found, "it was refused, or is found");
                         require(c.is_empty() == refused, "and is counted if it is there");
                     },
                     {.deviations = 6}),
                 bounded);
}

// Tasks leave, each after it has started the next. The waiter is woken when none is live, and not
// before, and it destroys the manager. Bounded by deviations.
void ends_with(int chains, fate f, unsigned deviations) {
    expect_right(explore(
                     [=](execution& run) {
                         auto m = std::make_unique<manager>();
                         manager& shared = *m;
                         weft::atomic<int> living{0};
                         for (int n = 0; n < chains; ++n) {
                             require(shared.live.admit(no_limit) == verdict::admitted, "open");
                             living.fetch_add(1);
                         }
                         for (int n = 0; n < chains; ++n)
                             run.thread("task", [&] {
                                 // The next is live before this one has ended, if it is admitted.
                                 const bool next = shared.live.admit(no_limit) == verdict::admitted;
                                 if (next) living.fetch_add(1);
                                 living.fetch_sub(1);
                                 shared.live.leave();
                                 if (!next) return;
                                 living.fetch_sub(1);
                                 shared.live.leave();
                             });
                         run.thread("owner", [&] {
                             model::actor p, last;
                             shared.live.close();
                             if (shared.wait(p, f)) {
                                 require(living.load(std::memory_order_relaxed) == 0,
                                         "empty is empty");
                             } else {
                                 require(shared.wait(last), "the second waits for its end");
                             }
                             shared.live.alone();
                             shared.memory.write(1);
                             m.reset();
                             p.check();
                             last.check();
                         });
                         run.go();
                     },
                     {.deviations = deviations}),
                 bounded);
}

TEST(live_count, is_not_touched_once_its_owner_finds_it_empty) {
    ends_with(1, fate::none, 5);
    ends_with(2, fate::none, 3);
}
TEST(live_count, lets_a_wait_end_by_deadline_stop_or_frame_end) {
    ends_with(1, fate::deadline, 4);
    ends_with(1, fate::stop, 4);
    ends_with(1, fate::end, 4);
}

// Without closing: a waiter is woken when the count is empty once, although others enter
// afterwards.
TEST(live_count, wakes_a_waiter_although_the_next_task_enters) {
    expect_right(explore(
                     [](execution& run) {
                         manager m;
                         model::actor p;
                         require(m.live.admit(no_limit) == verdict::admitted, "open");
                         run.thread("waits", [&] { require(m.wait(p), "there was a moment"); });
                         run.thread("tasks", [&] {
                             m.live.leave();
                             require(m.live.admit(no_limit) == verdict::admitted, "open");
                             m.live.leave();
                         });
                         run.go();
                         p.check();
                         require(m.live.is_empty(), "all have left");
                     },
                     {.deviations = 6}),
                 bounded);
}

// What a task wrote is seen by a thread that finds that it has left.
TEST(live_count, shows_a_tasks_writes_once_empty) {
    expect_right(explore([](execution& run) {
        manager m;
        require(m.live.admit(no_limit) == verdict::admitted, "open");
        run.thread("task", [&] {
            m.memory.write(1);
            m.live.leave();
        });
        run.thread("looks", [&] {
            if (m.live.is_empty()) require(m.memory.read() == 1, "it is all there");
        });
        run.go();
    }));
}

}  // namespace
