// weft/wait/detail/end_queue.hpp under the interleavings of an end with threads that wait for the
// end, check for it, or cancel the wait. Bounded by deviations: a thread that finds the queue
// locked spins.
#include "weft/wait/detail/end_queue.hpp"

#include <gtest/gtest.h>

#include <array>

#include "model/actor.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;
using model::fate;

// The first thread that sees the end destroys the object, at once if necessary; a later access
// races.
struct thing {
    weft::detail::end_queue end;
    model::var<int> life{1};  // read at each use, and written at its end
    model::var<int> outcome{0};
};

struct join {
    explicit join(thing& t) noexcept : of(t) {}
    bool start(weft::waiter& w) noexcept {
        node.owner = &w;
        w.enlist("an end", &of, this, [](weft::waiter& me) noexcept {
            auto& self = me.operation<join>();
            self.of.end.cancel(self.node);
        });
        return of.end.enlist(node);
    }
    thing& of;
    weft::wait_node node;
};

enum class order { as_told, ends_before_it_unlocks };  // the second is wrong

void end_it(thing& t, order how) {
    weft::wait_list woken;
    static_cast<void>(t.life.read());
    t.outcome.write(7);
    require(t.end.lock(), "it ends once");
    t.end.claim_all(woken);
    if (how == order::as_told) {
        static_cast<void>(t.life.read());
        t.end.unlock_for_ever();
    } else {
        t.end.unlock_for_ever();
        static_cast<void>(t.life.read());
    }
    weft::wait_queue::wake_all(woken);
}

// One thread waits or checks, and destroys the object if it has ended.
report end_beside(bool waits, fate f, order how, unsigned deviations) {
    return explore(
        [=](execution& run) {
            thing t;
            model::actor p;
            run.thread("ends", [&] { end_it(t, how); });
            run.thread("has", [&] {
                join j(t);
                if (waits)
                    static_cast<void>(p.wait([&](weft::waiter& w) { return j.start(w); }, f));
                if (!t.end.has_ended()) return;
                require(t.outcome.read() == 7, "what came before the end is seen");
                t.life.write(0);
            });
            run.go();
            p.check();
        },
        {.deviations = deviations});
}

TEST(end_queue, can_be_destroyed_once_the_end_is_seen) {
    expect_right(end_beside(false, fate::none, order::as_told, 6));
    expect_right(end_beside(true, fate::none, order::as_told, 6), bounded);
}
TEST(end_queue, checker_finds_an_access_after_the_end) {
    expect_found(end_beside(false, fate::none, order::ends_before_it_unlocks, 6), "race");
}
TEST(end_queue, has_one_winner_of_end_and_cancellation) {
    for (const fate f : {fate::deadline, fate::stop, fate::both, fate::end})
        expect_right(end_beside(true, f, order::as_told, 5), bounded);
}

// Under its lock two threads change what it guards, until the end, which both see.
TEST(end_queue, excludes_until_the_end_and_publishes_it) {
    expect_right(explore(
                     [](execution& run) {
                         weft::detail::end_queue q;
                         model::var<int> guarded{0};
                         std::array<int, 2> added{};
                         for (std::size_t i = 0; i < 2; ++i)
                             run.thread("changes", [&, i] {
                                 const weft::detail::end_queue::hold open(q);
                                 added[i] = open ? 1 : 0;
                                 if (open)
                                     guarded.write(guarded.read() + 1);
                                 else
                                     require(guarded.read() >= 10, "it has ended");
                             });
                         int before = 0;
                         run.thread("ends", [&] {
                             require(q.lock(), "it ends once");
                             before = guarded.read();
                             guarded.write(before + 10);
                             q.unlock_for_ever();
                         });
                         run.go();
                         require(before == added[0] + added[1], "each came before, or not at all");
                     },
                     {.deviations = 5}),
                 bounded);
}

}  // namespace
