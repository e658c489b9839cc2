// weft/coroutine/shared_seats.hpp under every interleaving of those that make coroutines, the
// thread on which they end, and one that destroys the group once none is left. Every walk is whole.
#include "weft/coroutine/shared_seats.hpp"

#include <gtest/gtest.h>

#include "model/expect.hpp"
#include "model/model.hpp"

namespace {

using model::execution;
using model::expect_right;
using model::explore;
using weft::detail::shared_seats;

TEST(shared_seats, are_counted_whatever_threads_take_them_and_give_them_up) {
    expect_right(explore([](execution& run) {
        shared_seats seats;
        model::var<int> on_first{0}, on_second{0};
        seats.take(2);
        seats.take(2);
        for (auto* where : {&on_first, &on_second})
            run.thread("maker", [&, where] {
                where->write(static_cast<int>(seats.take(2)));
                seats.give_up();
            });
        run.thread("loop", [&] {
            seats.give_up();
            seats.give_up();
        });
        run.go();
        model::require(seats.taken() == 0, "all have been given up");
        model::require(on_first.read() + on_second.read() == 1, "they take turns");
    }));
}

// The group's stacks, its buffers and itself: used by the loop's thread until the last seat is
// given up, freed by the thread that finds that none is taken.
TEST(shared_seats, that_are_all_given_up_let_the_group_be_destroyed) {
    expect_right(explore([](execution& run) {
        shared_seats seats;
        model::var<int> group{0};
        seats.take(1);
        seats.take(1);
        for (int n = 0; n < 2; ++n)
            run.thread("loop", [&, n] {
                if (n == 0) group.write(group.read() + 1);  // one group, one thread
                seats.give_up();
            });
        run.thread("destroys", [&] {
            if (seats.taken() == 0) group.write(-1);
        });
        run.go();
    }));
}

}  // namespace
