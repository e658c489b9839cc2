// weft/coroutine/detail/shared_seats.hpp under every interleaving of the threads that make
// coroutines, the threads on which they end, and one that destroys the group once none is left.
// Every walk is complete.
#include "weft/coroutine/detail/shared_seats.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::shared_seats;

// The names of threads.
constexpr char maker{}, loop{}, first{}, second{};

TEST(shared_seats, are_counted_across_acquiring_and_releasing_threads) {
    expect_right(explore([](execution& run) {
        shared_seats seats(2, &maker);
        model::var<int> on_first{0}, on_second{0};
        seats.take(&maker);
        seats.take(&maker);
        run.thread("first", [&] {
            on_first.write(static_cast<int>(seats.take(&first)));
            seats.give_up(&first);
        });
        run.thread("second", [&] {
            on_second.write(static_cast<int>(seats.take(&second)));
            seats.give_up(&second);
        });
        run.thread("loop", [&] {
            seats.give_up(&loop);
            seats.give_up(&loop);
        });
        run.go();
        model::require(seats.taken() == 0, "all have been given up");
        model::require(on_first.read() + on_second.read() == 1, "they take turns");
    }));
}

TEST(shared_seats, of_the_creating_thread_are_counted_with_the_others) {
    expect_right(explore(
        [](execution& run) {
            shared_seats seats(2, &maker);
            seats.take(&first);
            run.thread("maker", [&] {
                const std::size_t a = seats.take(&maker);
                seats.give_up(&maker);
                const std::size_t b = seats.take(&maker);
                model::require(a + b == 1, "they take turns");
                seats.give_up(&maker);
                seats.give_up(&maker);
            });
            run.thread("first", [&] {
                seats.take(&first);
                seats.take(&first);
                seats.give_up(&first);
            });
            run.go();
            model::require(seats.taken() == 1, "one is left");
        },
        {.deviations = 12}));
}

// A seat that is taken on one thread and released on another is seen taken before it is seen
// released: otherwise the count would be zero, or four billion.
TEST(shared_seats, of_the_creator_stay_counted_when_released_elsewhere) {
    expect_right(explore(
        [](execution& run) {
            shared_seats seats(1, &maker);
            weft::atomic<bool> is_made{false};
            seats.take(&maker);  // stays
            run.thread("maker", [&] {
                seats.take(&maker);
                is_made.store(true, std::memory_order_release);
            });
            run.thread("loop", [&] {
                if (is_made.load(std::memory_order_acquire)) seats.give_up(&loop);
            });
            run.thread("asks", [&] {
                const std::size_t n = seats.taken();
                model::require(n == 1 || n == 2, "the one that stays is counted, and none twice");
            });
            run.go();
        },
        {.deviations = 12}));
}

TEST(shared_seats, of_another_thread_stay_counted_when_creator_releases) {
    expect_right(explore(
        [](execution& run) {
            shared_seats seats(1, &maker);
            weft::atomic<bool> are_made{false};
            seats.take(&maker);  // stays
            run.thread("first", [&] {
                seats.take(&first);
                seats.take(&first);
                are_made.store(true, std::memory_order_release);
            });
            run.thread("maker", [&] {
                if (!are_made.load(std::memory_order_acquire)) return;
                seats.give_up(&maker);
                seats.give_up(&maker);
                seats.take(&maker);
            });
            run.thread("asks", [&] {
                const std::size_t n = seats.taken();
                model::require(1 <= n && n <= 3, "the one that stays is counted, and none twice");
            });
            run.go();
        },
        {.deviations = 20}));
}

// The group's stacks, its buffers and itself: used by the loop's thread until the last seat is
// released, freed by the thread that finds that none is taken.
TEST(shared_seats, allow_destruction_of_the_group_once_all_are_released) {
    for (const bool on_maker : {false, true})
        expect_right(explore(
            [on_maker](execution& run) {
                shared_seats seats(1, &maker);
                model::var<int> used_by_loop{0}, used_by_other{0};
                seats.take(&maker);
                seats.take(&second);
                run.thread("loop", [&] {
                    used_by_loop.write(1);
                    seats.give_up(on_maker ? &maker : &loop);
                });
                run.thread("other", [&] {
                    used_by_other.write(1);
                    seats.give_up(&first);
                });
                run.thread("destroys", [&] {
                    if (seats.taken() == 0) {
                        used_by_loop.write(-1);
                        used_by_other.write(-1);
                    }
                });
                run.go();
            },
            {.deviations = 12}));
}

}  // namespace
