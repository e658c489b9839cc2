// The checker's own laws: it finds the faults that it claims to find, and passes correct programs.
// The cases are the classical small programs of weak memory, each correct and each broken in one
// place.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "model/names.hpp"
#include "weft/base/assert.hpp"
#include "weft/base/detail/atomic.hpp"

namespace {

using namespace model::names;
using enum std::memory_order;

// -------------------------------------------------------------------------------------------------
// The walk

TEST(checker, explores_each_interleaving_once_per_bound) {
    std::set<std::string> seen;
    const report r = explore(
        [&](execution& run) {
            weft::atomic<int> x{0};
            std::string order;
            for (const char* name : {"a", "b"})
                run.thread(name, [&, name] {
                    for (int n = 0; n < 3; ++n) {
                        x.fetch_add(1);
                        order += name;
                    }
                });
            run.go();
            seen.insert(order);
        },
        {.deviations = 10});
    expect_right(r);
    EXPECT_EQ(r.extent, "whole");
    EXPECT_EQ(seen.size(), 20u);  // 6 over 3
    EXPECT_EQ(r.deviations, 4u);  // a b a b a b: not the end of a, but the others before it
}

// Code before a thread's first operation runs when the thread is picked for that operation, not
// when all threads start. So a fault in a word that is no weft::atomic, which the walk does not
// track, is found.
TEST(checker, starts_a_thread_when_it_is_scheduled) {
    std::set<std::pair<int, int>> seen;
    expect_right(explore([&](execution& run) {
        weft::atomic<int> x{0};
        int unknown = 0;
        std::pair<int, int> saw;
        run.thread("writes", [&] {
            unknown = 1;
            x.fetch_add(1);
        });
        run.thread("reads", [&] {
            saw.first = unknown;
            x.fetch_add(1);
            saw.second = unknown;
        });
        run.go();
        seen.insert(saw);
    }));
    EXPECT_EQ(seen, (std::set<std::pair<int, int>>{{0, 0}, {1, 1}}));
}

TEST(checker, is_incomplete_when_the_bound_cuts_schedules) {
    const auto body = [](execution& run) {
        weft::atomic<int> x{0};
        for (int t = 0; t < 3; ++t)
            run.thread("t", [&] { x.fetch_add(1), x.fetch_add(1), x.fetch_add(1); });
        run.go();
    };
    const report r = explore(body, {.deviations = 1});
    EXPECT_TRUE(r.passed);
    EXPECT_FALSE(r.complete);
    EXPECT_EQ(r.extent, "bounded: at most 1 deviations");
    EXPECT_EQ(explore(body, {.random_schedules = 2}).extent, "bounded: drawn by lot");
    const report capped = explore(body, {.deviations = 9, .most_schedules = 500});
    expect_found(capped, "more than 500 schedules");
    EXPECT_FALSE(capped.complete);
}

// Two threads that read, add and write, at any time.
void lost_update(execution& run) {
    weft::atomic<int> x{0};
    for (const char* name : {"a", "b"}) run.thread(name, [&] { x.store(x.load() + 1); });
    run.go();
    model::require(x.load() == 2, "both were counted");
}

TEST(checker, can_replay_a_failure) {
    const report r = explore(lost_update);
    expect_found(r, "both were counted");
    EXPECT_EQ(r.deviations, 1u) << r.text;
    const report again = explore(lost_update, {.replay = r.replay});
    EXPECT_EQ(again.schedules, 1u);
    EXPECT_EQ(again.failure, r.failure);
    EXPECT_NE(again.text.find("store"), std::string::npos) << again.text;
    EXPECT_NE(again.text.find("checker_test.cpp"), std::string::npos) << again.text;
}

TEST(checker, finds_a_failure_in_random_schedules_and_replays_it) {
    const report r = explore(lost_update, {.random_schedules = 10'000, .seed = 3});
    expect_found(r, "both were counted");
    EXPECT_FALSE(r.complete);
    const report again = explore(lost_update, {.random_schedules = 10'000, .seed = 3});
    EXPECT_EQ(again.schedules, r.schedules);
    EXPECT_EQ(again.replay, r.replay);
    EXPECT_EQ(explore(lost_update, {.replay = r.replay}).failure, r.failure);
}

TEST(checker, rejects_a_nondeterministic_test) {
    int executions = 0;
    expect_found(explore([&](execution& run) {
                     weft::atomic<int> x{0};
                     run.thread("a", [&] { x.store(1), x.store(2); });
                     run.thread("b", [&] { x.store(3), x.store(4); });
                     if (++executions > 1) run.thread("c", [&] { x.store(5); });
                     run.go();
                 }),
                 "not deterministic");
}

TEST(checker, reports_a_thread_that_is_never_run) {
    const report r = explore([](execution& run) { run.thread("a", [] {}); });
    expect_found(r, "go() is missing");
    EXPECT_EQ(r.replay, "0");
}

TEST(checker, reports_exceptions_and_failed_assertions) {
    expect_found(explore([](execution& run) {
                     run.thread("a", [] { throw std::runtime_error("x"); });
                     run.go();
                 }),
                 "an exception left a");
    expect_found(explore([](execution& run) {
                     run.thread("a", [] { WEFT_ASSERT(1 + 1 == 3, "the rule of the source"); });
                     run.go();
                 }),
                 "the rule of the source");
}

// -------------------------------------------------------------------------------------------------
// Waiting

TEST(checker, finds_a_deadlock) {
    const report r = explore([](execution& run) {
        weft::atomic<int> a{0}, b{0};
        const auto lock_both = [](weft::atomic<int>& first, weft::atomic<int>& second) {
            for (auto* lock : {&first, &second}) {
                while (lock->exchange(1) == 1) model::wait_until([&] { return lock->load() == 0; });
            }
            first.store(0);
            second.store(0);
        };
        run.thread("left", [&] { lock_both(a, b); });
        run.thread("right", [&] { lock_both(b, a); });
        run.go();
    });
    expect_found(r, "deadlock: left waits at checker_test.cpp");
    EXPECT_NE(r.failure.find(", right waits at"), std::string::npos) << r.failure;
}

TEST(checker, resumes_a_waiter_that_then_sees_the_awaited_store) {
    expect_right(explore([](execution& run) {
        weft::atomic<int> ready{0};
        model::var<int> data;
        run.thread("reader", [&] {
            model::wait_until([&] { return ready.load(acquire) == 1; });
            model::require(data.read() == 7, "it has seen what was written");
        });
        run.thread("writer", [&] {
            data.write(7);
            ready.store(1, release);
        });
        run.go();
    }));
}

TEST(checker, finds_an_endless_execution) {
    expect_found(explore([](execution& run) {
                     weft::atomic<int> never{0};
                     run.thread("a", [&] {
                         while (never.load() == 0) model::spin();
                     });
                     run.go();
                 }),
                 "no end after");
}

TEST(checker, lets_a_third_thread_run_while_two_spin) {
    expect_right(explore([](execution& run) {
        weft::atomic<int> ready{0};
        for (int n = 0; n < 2; ++n)
            run.thread("spins", [&] {
                while (ready.load() == 0) model::spin();
            });
        run.thread("writer", [&] { ready.store(1); });
        run.go();
    }));
}

TEST(checker, finds_a_use_of_a_destroyed_atomic) {
    expect_found(explore([](execution& run) {
                     weft::atomic<int> ended{0};
                     std::optional<weft::atomic<int>> x(0);
                     run.thread("ends", [&] {
                         x.reset();
                         ended.store(1);
                     });
                     run.thread("uses", [&, p = &*x] { p->store(1); });
                     run.go();
                 }),
                 "used after its end");
}

TEST(checker, rejects_a_predicate_that_does_more_than_load) {
    expect_found(explore([](execution& run) {
                     weft::atomic<int> x{0};
                     run.thread("a",
                                [&] { model::wait_until([&] { return x.exchange(1) == 1; }); });
                     run.go();
                 }),
                 "does more than load");
}

// -------------------------------------------------------------------------------------------------
// Spin locks

// Each of two threads adds to a plain variable under the lock.
template <class Lock, class Unlock>
report count_under(Lock lock, Unlock unlock) {
    return explore(
        [=](execution& run) {
            weft::atomic<int> word{0};
            model::var<int> count;
            for (const char* name : {"a", "b"})
                run.thread(name, [&] {
                    lock(word);
                    count.write(count.read() + 1);
                    unlock(word);
                });
            run.go();
            model::require(count.read() == 2, "both were counted");
        },
        {.deviations = 6});
}

void lock_rightly(weft::atomic<int>& word) {
    while (word.exchange(1, acquire) == 1) weft::detail::spin_pause();
}
void unlock_rightly(weft::atomic<int>& word) { word.store(0, release); }

TEST(checker, finds_no_fault_in_a_correct_spin_lock) {
    expect_right(count_under(lock_rightly, unlock_rightly));
}

TEST(checker, finds_a_race_in_a_test_then_set_lock) {
    const auto lock = [](weft::atomic<int>& word) {
        while (word.load(acquire) == 1) model::spin();
        word.store(1, relaxed);
    };
    expect_found(count_under(lock, unlock_rightly), "a data race");
}

TEST(checker, finds_a_race_in_a_spin_lock_without_acquire) {
    const auto lock = [](weft::atomic<int>& word) {
        while (word.exchange(1, relaxed) == 1) model::spin();
    };
    expect_found(count_under(lock, unlock_rightly), "a data race");
}

TEST(checker, finds_a_race_in_a_spin_lock_without_release) {
    const auto unlock = [](weft::atomic<int>& word) { word.store(0, relaxed); };
    expect_found(count_under(lock_rightly, unlock), "a data race");
}

// -------------------------------------------------------------------------------------------------
// Message passing

using order = std::memory_order;

// `data` is atomic, so that not a race but an old value is found.
report pass_message(order publish, order see, order before_publish = relaxed,
                    order after_see = relaxed) {
    return explore([=](execution& run) {
        weft::atomic<int> data{0}, ready{0};
        run.thread("writer", [&] {
            data.store(1, relaxed);
            if (before_publish != relaxed) weft::atomic_thread_fence(before_publish);
            ready.store(1, publish);
        });
        run.thread("reader", [&] {
            if (ready.load(see) == 0) return;
            if (after_see != relaxed) weft::atomic_thread_fence(after_see);
            model::require(data.load(relaxed) == 1, "the message is there");
        });
        run.go();
    });
}

TEST(checker, accepts_message_passing_with_release_and_acquire) {
    expect_right(pass_message(release, acquire));
    expect_right(pass_message(seq_cst, seq_cst));
    expect_right(pass_message(relaxed, relaxed, release, acquire));
    expect_right(pass_message(release, relaxed, relaxed, acquire));
    expect_right(pass_message(relaxed, relaxed, seq_cst, seq_cst));
}

TEST(checker, finds_a_lost_message_without_release_or_acquire) {
    const std::string old = "the message is there";
    expect_found(pass_message(relaxed, acquire), old);
    expect_found(pass_message(release, relaxed), old);
    expect_found(pass_message(relaxed, relaxed), old);
    expect_found(pass_message(relaxed, relaxed, release, relaxed), old);
    expect_found(pass_message(relaxed, relaxed, relaxed, acquire), old);
    expect_found(pass_message(relaxed, relaxed, acquire, release), old);
}

TEST(checker, continues_a_release_sequence_only_through_an_rmw) {
    const auto through = [](bool by_store) {
        return explore([=](execution& run) {
            model::var<int> data;
            weft::atomic<int> word{0};
            run.thread("writer", [&] {
                data.write(1);
                word.store(1, release);
            });
            run.thread("relay", [&] {
                if (by_store) {
                    if (word.load(relaxed) == 1) word.store(2, relaxed);
                } else {
                    int seen = 1;
                    word.compare_exchange_strong(seen, 2, relaxed, relaxed);
                }
            });
            run.thread("reader", [&] {
                if (word.load(acquire) == 2) model::require(data.read() == 1, "it is there");
            });
            run.go();
        });
    };
    expect_right(through(false));
    expect_found(through(true), "a data race");
}

// -------------------------------------------------------------------------------------------------
// Store buffering

// Each stores to its own and loads the other's: at most one may see nothing.
report buffer_stores(order storing, order loading, order between = relaxed) {
    return explore(
        [=](execution& run) {
            weft::atomic<int> x{0}, y{0};
            int a = -1, b = -1;
            const auto side = [=](weft::atomic<int>& mine, weft::atomic<int>& other, int& saw) {
                mine.store(1, storing);
                if (between != relaxed) weft::atomic_thread_fence(between);
                saw = other.load(loading);
            };
            run.thread("left", [&] { side(x, y, a); });
            run.thread("right", [&] { side(y, x, b); });
            run.go();
            model::require(a + b > 0, "one saw the other");
        },
        {.deviations = 8});
}

TEST(checker, finds_no_store_buffering_with_seq_cst) {
    expect_right(buffer_stores(seq_cst, seq_cst));
    expect_right(buffer_stores(relaxed, relaxed, seq_cst));
}

TEST(checker, finds_store_buffering_without_seq_cst) {
    const std::string missed = "one saw the other";
    expect_found(buffer_stores(relaxed, relaxed), missed);
    expect_found(buffer_stores(release, acquire), missed);
    expect_found(buffer_stores(release, acquire, acq_rel), missed);
    expect_found(buffer_stores(seq_cst, acquire), missed);
    expect_found(buffer_stores(release, seq_cst), missed);
}

// Dekker's lock by flags, as a try_lock: a thread that reads the other thread's flag as set does
// not enter.
report dekker(order storing, order loading) {
    return explore([=](execution& run) {
        weft::atomic<bool> left{false}, right{false};
        model::var<int> inside;
        const auto enter = [=, &inside](weft::atomic<bool>& mine, weft::atomic<bool>& other) {
            mine.store(true, storing);
            if (!other.load(loading)) inside.write(1);
            mine.store(false, release);
        };
        run.thread("left", [&] { enter(left, right); });
        run.thread("right", [&] { enter(right, left); });
        run.go();
    });
}

TEST(checker, finds_that_dekker_needs_seq_cst) {
    expect_right(dekker(seq_cst, seq_cst));
    expect_found(dekker(release, acquire), "a data race");
}

// -------------------------------------------------------------------------------------------------
// Coherence, and four threads

TEST(checker, keeps_reads_of_one_atomic_coherent) {
    expect_right(explore([](execution& run) {
        weft::atomic<int> x{0};
        run.thread("writer", [&] { x.store(1, relaxed), x.store(2, relaxed); });
        run.thread("reader", [&] {
            const int first = x.load(relaxed);
            model::require(x.load(relaxed) >= first, "a value does not become older");
        });
        run.go();
        model::require(x.load(relaxed) == 2, "the body sees what its threads did");
    }));
}

report independent_reads(order storing, order loading) {
    return explore(
        [=](execution& run) {
            weft::atomic<int> x{0}, y{0};
            int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
            run.thread("x", [&] { x.store(1, storing); });
            run.thread("y", [&] { y.store(1, storing); });
            run.thread("xy", [&] { x1 = x.load(loading), y1 = y.load(loading); });
            run.thread("yx", [&] { y2 = y.load(loading), x2 = x.load(loading); });
            run.go();
            model::require(!(x1 && !y1 && y2 && !x2), "both see one order");
        },
        {.deviations = 6});
}

TEST(checker, orders_independent_writes_only_with_seq_cst) {
    expect_right(independent_reads(seq_cst, seq_cst));
    expect_found(independent_reads(release, acquire), "both see one order");
}

TEST(checker, lets_only_a_weak_exchange_fail_spuriously) {
    const auto once = [](bool weak) {
        return explore([=](execution& run) {
            weft::atomic<int> x{0};
            run.thread("a", [&] {
                int zero = 0;
                const bool done =
                    weak ? x.compare_exchange_weak(zero, 1) : x.compare_exchange_strong(zero, 1);
                model::require(done, "it succeeds");
            });
            run.go();
        });
    };
    expect_right(once(false));
    expect_found(once(true), "it succeeds");
}

TEST(checker, computes_the_same_results_as_std_atomic) {
    expect_right(explore([](execution& run) {
        weft::atomic<unsigned char> byte{250};
        weft::atomic<const char*> pointer{nullptr};
        run.thread("a", [&] {
            model::require(byte.fetch_add(10) == 250 && byte.load() == 4, "it wraps round");
            model::require(byte.fetch_sub(5) == 4 && byte.load() == 255, "and back");
            model::require(byte.fetch_and(0xf0) == 255 && byte.load() == 0xf0, "and");
            model::require(byte.fetch_or(0x01) == 0xf0 && byte.load() == 0xf1, "or");
            model::require(byte.exchange(3) == 0xf1 && byte.load() == 3, "exchange");
            unsigned char seen = 4;
            model::require(!byte.compare_exchange_strong(seen, 9) && seen == 3, "differs");
            model::require(byte.compare_exchange_strong(seen, 9) && byte.load() == 9, "equals");
            const char* text = "x";
            pointer.store(text);
            model::require(pointer.load() == text, "a pointer");
        });
        run.go();
    }));
}

TEST(checker, treats_an_atomic_outside_an_execution_as_a_variable) {
    static constinit weft::atomic<int> x{5};
    EXPECT_EQ(x.fetch_add(2), 5);
    int seven = 7;
    EXPECT_TRUE(x.compare_exchange_weak(seven, 8));
    EXPECT_FALSE(x.compare_exchange_strong(seven, 9));
    EXPECT_EQ(seven, 8);
    x.store(x.exchange(1) + 1);
    EXPECT_EQ(x.load(), 9);
    EXPECT_THROW(model::spin(), std::logic_error);
}

}  // namespace
