// weft/queue/detail/inbox.hpp under the interleavings of a few threads.
#include "weft/queue/detail/inbox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "model/names.hpp"

namespace {

using namespace model::names;

struct item : weft::forward_node<> {
    model::var<int> payload;  // a race shows that nothing orders the push before the take
    int producer = 0;
    int number = 0;
};

// As many producers as `counts` has entries, each with so many items; what the owner takes is
// noted.
template <std::size_t N>
struct scene {
    explicit scene(std::array<int, N> item_counts) : counts(item_counts) {
        for (std::size_t p = 0; p < N; ++p)
            for (int n = 0; n < counts[p]; ++n) {
                items[p][static_cast<std::size_t>(n)].producer = static_cast<int>(p);
                items[p][static_cast<std::size_t>(n)].number = n;
            }
    }

    // Returns how many of its pushes required a wake.
    int push_all(std::size_t p) {
        int owed = 0;
        for (int n = 0; n < counts[p]; ++n) {
            item& x = items[p][static_cast<std::size_t>(n)];
            x.payload.write(x.number + 100);
            owed += box.push(x);
        }
        return owed;
    }

    // True when there was something.
    bool look_through(weft::forward_queue<item> taken) {
        const bool any = !taken.empty();
        taken.check();
        while (item* x = taken.pop_front()) {
            model::require(x->payload.read() == x->number + 100, "the payload is there");
            model::require(x->number == next[static_cast<std::size_t>(x->producer)]++,
                           "each producer's come in order, none lost, none twice");
            ++taken_count;
        }
        fillings += any;
        return any;
    }

    int total() const {
        int n = 0;
        for (int c : counts) n += c;
        return n;
    }

    weft::detail::inbox<item> box;
    std::array<int, N> counts;
    std::array<std::array<item, 3>, N> items;
    std::array<int, N> next{};
    int taken_count = 0;
    int fillings = 0;
};

template <std::size_t N>
report push_and_take(std::array<int, N> counts, int takes, unsigned deviations) {
    return explore(
        [=](execution& run) {
            scene<N> s(counts);
            std::array<int, N> owed{};
            for (std::size_t p = 0; p < N; ++p)
                run.thread("producer" + std::to_string(p), [&, p] { owed[p] = s.push_all(p); });
            run.thread("owner", [&] {
                for (int n = 0; n < takes; ++n) s.look_through(s.box.take());
            });
            run.go();
            s.look_through(s.box.take());
            model::require(s.taken_count == s.total(), "all came");
            int owed_in_all = 0;
            for (int o : owed) owed_in_all += o;
            model::require(owed_in_all == s.fillings, "one push of each filling owes a wake");
        },
        {.deviations = deviations});
}

TEST(inbox, loses_nothing_and_needs_one_wake_per_batch) {
    expect_right(push_and_take<1>({3}, 2, 20));
    expect_right(push_and_take<2>({1, 1}, 2, 20));
}

TEST(inbox, preserves_the_order_of_each_of_two_producers) {
    expect_right(push_and_take<2>({2, 2}, 2, 3), bounded);
}

TEST(inbox, keeps_its_invariants_in_random_schedules) {
    const report r = explore(
        [](execution& run) {
            scene<3> s({2, 2, 2});
            for (std::size_t p = 0; p < 3; ++p)
                run.thread("producer" + std::to_string(p), [&, p] { s.push_all(p); });
            run.thread("owner", [&] {
                for (int n = 0; n < 4; ++n)
                    s.look_through(n % 2 == 0 ? s.box.take_and_watch() : s.box.take());
            });
            run.go();
            s.look_through(s.box.take());
            model::require(s.taken_count == s.total(), "all came");
        },
        {.random_schedules = 2'000, .seed = 20});
    EXPECT_TRUE(r.passed) << r.text;
}

// -------------------------------------------------------------------------------------------------
// The owner sleeps when the inbox is empty. Producers wake the owner by a word that remembers a
// wake, like an eventfd: a lost wake is a deadlock.

enum class manner {
    as_told,         // clear the wake, then take; sleep if a take found nothing
    watching,        // the same, but while busy the inbox is watched
    takes_first,     // wrong: clears a wake for what came after the take
    sleeps_on_watch  // wrong: the last check is no take
};

template <std::size_t N>
report sleep_and_wake(std::array<int, N> counts, manner how, unsigned deviations) {
    return explore(
        [=](execution& run) {
            scene<N> s(counts);
            weft::atomic<int> wake{0};
            for (std::size_t p = 0; p < N; ++p)
                run.thread("producer" + std::to_string(p), [&, p] {
                    for (int n = 0; n < s.counts[p]; ++n) {
                        item& x = s.items[p][static_cast<std::size_t>(n)];
                        x.payload.write(x.number + 100);
                        if (s.box.push(x)) wake.exchange(1, std::memory_order_release);
                    }
                });
            run.thread("owner", [&] {
                while (s.taken_count < s.total()) {
                    if (how == manner::takes_first) {
                        const bool any = s.look_through(s.box.take());
                        wake.exchange(0, std::memory_order_acquire);
                        if (any) continue;
                    } else {
                        wake.exchange(0, std::memory_order_acquire);
                        if (how != manner::as_told && s.look_through(s.box.take_and_watch()))
                            continue;
                        if (how != manner::sleeps_on_watch && s.look_through(s.box.take()))
                            continue;
                    }
                    if (s.taken_count == s.total()) break;
                    model::wait_until([&] { return wake.load(std::memory_order_relaxed) == 1; });
                }
            });
            run.go();
        },
        {.deviations = deviations});
}

TEST(inbox, loses_no_wake) {
    expect_right(sleep_and_wake<1>({1}, manner::as_told, 20));
    expect_right(sleep_and_wake<1>({2}, manner::as_told, 5), bounded);
    expect_right(sleep_and_wake<2>({1, 2}, manner::as_told, 3), bounded);
}

TEST(inbox, loses_no_wake_when_watched_by_a_busy_owner) {
    expect_right(sleep_and_wake<1>({1}, manner::watching, 20));
    expect_right(sleep_and_wake<1>({2}, manner::watching, 5), bounded);
    expect_right(sleep_and_wake<2>({1, 2}, manner::watching, 3), bounded);
}

// The owner is a local of one of the threads: a thread that wakes the owner must find it there.
report end_the_owner(bool waits_for_wakes) {
    return explore(
        [=](execution& run) {
            scene<2> s({1, 1});
            weft::atomic<int> wakes{0};
            model::var<int> owner;
            for (std::size_t p = 0; p < 2; ++p)
                run.thread("producer" + std::to_string(p), [&, p] {
                    s.items[p][0].payload.write(100);
                    if (!s.box.push(s.items[p][0])) return;
                    static_cast<void>(owner.read());  // the wake
                    wakes.fetch_add(1, std::memory_order_release);
                });
            run.thread("owner", [&] {
                for (int n = 0; s.taken_count < 2; ++n) {
                    if (s.look_through(n == 1 ? s.box.take_and_watch() : s.box.take())) continue;
                    model::spin();
                }
                const auto owed = static_cast<int>(s.box.owed_count());
                while (waits_for_wakes && wakes.load(std::memory_order_acquire) < owed)
                    model::spin();
                owner.write(0);  // the end
            });
            run.go();
        },
        {.deviations = 4});
}

TEST(inbox, can_be_destroyed_after_pending_wakes_are_delivered) {
    expect_right(end_the_owner(true), bounded);
    expect_found(end_the_owner(false), "a data race");
}

TEST(inbox, checker_finds_lost_wake_when_taken_before_clearing) {
    expect_found(sleep_and_wake<1>({1}, manner::takes_first, 4), "deadlock: owner waits");
}

TEST(inbox, checker_finds_lost_wake_when_watched_owner_sleeps) {
    expect_found(sleep_and_wake<1>({1}, manner::sleeps_on_watch, 4), "deadlock: owner waits");
}

}  // namespace
