// weft/queue/detail/steal_deque.hpp under the interleavings of an owner and a few thieves.
#include "weft/queue/detail/steal_deque.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::asymmetric_fence;
using weft::detail::steal_mark;
using weft::detail::steal_status;

struct item {
    model::var<int> payload;  // a race shows that nothing orders the push before the theft
    int number = 0;
    bool taken = false;
};

enum class manner {
    as_told,
    at_once,          // the two steps and the fence are one call
    fences_first,     // wrong: the fence is not between the mark and the theft
    goes_on,          // wrong: steals a second time by the same fence
    without_a_fence,  // wrong
};

// One deque, its owner, which runs `program` (+ pushes, - pops), and thieves.
struct robbery {
    robbery(std::size_t first_count, asymmetric_fence fence) : deque(first_count, fence) {}

    void own(const std::string& program) {
        std::vector<int> pushed;  // and not popped
        for (char c : program) {
            if (c == '+') {
                item& x = items[pushed_count];
                x.number = static_cast<int>(pushed_count++);
                x.payload.write(x.number + 100);
                pushed.push_back(x.number);
                model::require(deque.try_push(x), "there is memory");
            } else if (item* x = deque.pop()) {
                take(*x);
                model::require(x->number == pushed.back(), "the last comes first");
                pushed.pop_back();
            } else {
                pushed.clear();  // all stolen; what is lost is found at the end
            }
        }
    }

    void steal(int times, manner how) {
        int last = -1;
        for (int n = 0; n < times; ++n) {
            if (how == manner::fences_first) asymmetric_fence::heavy();
            const auto in_two_steps = [&] {
                const steal_mark m = deque.mark();
                if (how == manner::as_told || (how == manner::goes_on && n == 0))
                    asymmetric_fence::heavy();
                return deque.steal(m);
            };
            const weft::detail::steal_result<item> r =
                how == manner::at_once ? deque.steal() : in_two_steps();
            model::require((r.status == steal_status::taken) == (r.item != nullptr),
                           "it says what it did");
            if (r.item == nullptr) continue;
            take(*r.item);
            model::require(r.item->number > last, "the first comes first");
            last = r.item->number;
        }
    }

    void take(item& x) {
        model::require(!x.taken, "nothing is taken twice");
        x.taken = true;
        model::require(x.payload.read() == x.number + 100, "the payload is there");
    }

    // After all threads.
    void finish() {
        deque.check();
        while (item* x = deque.pop()) take(*x);
        for (std::size_t n = 0; n < pushed_count; ++n)
            model::require(items[n].taken, "nothing is lost");
        model::require(deque.empty(), "it is empty");
    }

    weft::detail::steal_deque<item> deque;
    std::array<item, 6> items;
    std::size_t pushed_count = 0;
};

struct plan {
    std::string program;
    std::vector<int> thefts;  // of each thief
    unsigned deviations = 20;
    std::size_t first_count = 4;
    manner how = manner::as_told;
    bool owner_pays = false;
};

report rob(const plan& p) {
    return explore(
        [&](execution& run) {
            robbery r(p.first_count, p.owner_pays ? asymmetric_fence::full() : asymmetric_fence());
            run.thread("owner", [&] { r.own(p.program); });
            for (int times : p.thefts) run.thread("thief", [&, times] { r.steal(times, p.how); });
            run.go();
            r.finish();
        },
        {.deviations = p.deviations});
}

TEST(steal_deque, gives_each_entry_to_one_thread) {
    expect_right(rob({.program = "+-", .thefts = {1}}));
    expect_right(rob({.program = "+-", .thefts = {1, 1}, .deviations = 4}), bounded);
    expect_right(rob({.program = "++-", .thefts = {1}, .deviations = 6}), bounded);
}

// The owner does not see the last but one go, while a thief is about to take the last.
TEST(steal_deque, gives_the_last_two_entries_to_two_of_three_threads) {
    expect_right(rob({.program = "++-", .thefts = {1, 1}, .deviations = 4}), bounded);
    expect_right(rob({.program = "++--", .thefts = {1, 1}, .deviations = 3}), bounded);
    expect_right(rob({.program = "++-", .thefts = {2}, .deviations = 5}), bounded);
}

TEST(steal_deque, gives_each_entry_to_one_thread_with_one_call_steals) {
    expect_right(rob({.program = "++-", .thefts = {1, 1}, .deviations = 4, .how = manner::at_once}),
                 bounded);
}

TEST(steal_deque, distinguishes_an_entry_from_a_later_one_in_its_slot) {
    expect_right(rob({.program = "+-+-", .thefts = {1, 1}, .deviations = 3}), bounded);
    expect_right(rob({.program = "++-+-", .thefts = {2}, .deviations = 4}), bounded);
}

TEST(steal_deque, grows_during_concurrent_steals) {
    expect_right(rob({.program = "+++", .thefts = {1}, .deviations = 5, .first_count = 1}),
                 bounded);
    expect_right(rob({.program = "++-", .thefts = {1, 1}, .deviations = 3, .first_count = 1}),
                 bounded);
    expect_right(rob({.program = "+-+++-", .thefts = {2, 1}, .deviations = 2, .first_count = 1}),
                 bounded);
}

TEST(steal_deque, reuses_slots_after_steals) {
    expect_right(rob({.program = "+++++", .thefts = {2}, .deviations = 3, .first_count = 2}),
                 bounded);
}

TEST(steal_deque, keeps_its_invariants_with_a_fence_in_the_owner) {
    expect_right(rob({.program = "++-", .thefts = {1, 1}, .deviations = 3, .owner_pays = true}),
                 bounded);
    model::has_membarrier = false;  // so that the thieves have one, too, and nothing more
    const report r = rob({.program = "++-", .thefts = {1, 1}, .deviations = 3});
    const report grown =
        rob({.program = "+++-", .thefts = {1, 1}, .deviations = 2, .first_count = 1});
    model::has_membarrier = true;
    expect_right(r, bounded);
    expect_right(grown, bounded);
}

TEST(steal_deque, keeps_its_invariants_in_random_schedules) {
    const report r = explore(
        [](execution& run) {
            robbery all(1, {});
            run.thread("owner", [&] { all.own("++-+--++-+-"); });
            for (int n = 0; n < 2; ++n) run.thread("thief", [&] { all.steal(3, manner::as_told); });
            run.go();
            all.finish();
        },
        {.random_schedules = 10'000, .seed = 4});
    EXPECT_TRUE(r.passed) << r.text;
}

// A thief that visits two deques uses one fence for both, while another thief steals from one of
// them, too.
TEST(steal_deque, needs_one_fence_for_a_round_of_steals) {
    expect_right(explore(
                     [](execution& run) {
                         robbery left(4, {}), right(4, {});
                         run.thread("left", [&] { left.own("++-"); });
                         run.thread("right", [&] { right.own("+-"); });
                         run.thread("round", [&] {
                             const steal_mark marks[] = {left.deque.mark(), right.deque.mark()};
                             asymmetric_fence::heavy();
                             if (item* x = left.deque.steal(marks[0]).item) left.take(*x);
                             if (item* x = right.deque.steal(marks[1]).item) right.take(*x);
                         });
                         run.thread("thief", [&] { left.steal(1, manner::as_told); });
                         run.go();
                         left.finish();
                         right.finish();
                     },
                     {.deviations = 2}),
                 bounded);
}

TEST(steal_deque, checker_finds_entry_taken_twice_without_the_fence) {
    const std::string twice = "nothing is taken twice";
    for (manner how : {manner::without_a_fence, manner::fences_first})
        expect_found(rob({.program = "++-", .thefts = {1, 1}, .deviations = 5, .how = how}), twice);
}

TEST(steal_deque, checker_finds_entry_taken_twice_on_a_reused_fence) {
    expect_found(rob({.program = "++-", .thefts = {2}, .deviations = 5, .how = manner::goes_on}),
                 "nothing is taken twice");
}

}  // namespace
