// weft/sync/detail/atomic_wait_queue.hpp under the interleavings of a few waiters.
#include "weft/sync/detail/atomic_wait_queue.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/names.hpp"
#include "model/turnstile.hpp"

namespace {

using namespace model::names;
using model::fate;
using weft::detail::atomic_wait_queue;
using weft::detail::queue_node;

// A mutex without an owner. The fast ways past the lock are as mutex.hpp has them; the wrong way
// frees a word without a check for its waiters.
template <bool Wrong = false>
class lock {
public:
    struct node : queue_node {
        explicit node(lock&) {}
    };

    explicit lock(bool is_free) : queue_(is_free ? 0 : taken) {}

    bool take(weft::waiter& w, node& n) {
        atomic_wait_queue::word nobody = 0;
        if (queue_.load() == 0 && queue_.change(nobody, taken)) return false;
        const atomic_wait_queue::word v = queue_.lock();
        line_.write(0);
        if (v == 0) {
            queue_.unlock(taken);
            return false;
        }
        n.enlist(w, queue_, "a lock");
        queue_.unlock(v);
        return true;
    }
    void give() {
        atomic_wait_queue::word w = queue_.load();
        if (Wrong && atomic_wait_queue::value_of(w) == taken && queue_.change(w, w & ~taken))
            return;
        if (w == taken && queue_.change(w, 0)) return;
        static_cast<void>(queue_.lock());
        line_.write(0);
        queue_node* const next = queue_.claim_first();
        if (next != nullptr) next->given = true;
        queue_.unlock(next != nullptr ? taken : 0);
        if (next != nullptr) next->owner->wake();
    }
    bool is_at_rest() { return queue_.load() == 0 && queue_.front() == nullptr; }

private:
    static constexpr atomic_wait_queue::word taken = atomic_wait_queue::unit;

    atomic_wait_queue queue_;
    model::var<int> line_;  // touched under the lock
};

TEST(atomic_wait_queue, loses_no_wake_and_wakes_no_waiter_twice) {
    expect_right(model::pass<lock<>>(2, 1, 5), bounded);
    expect_right(model::pass<lock<>>(2, 2, 3), bounded);
    expect_right(model::pass<lock<>>(3, 1, 3), bounded);
}

TEST(atomic_wait_queue, has_one_winner_of_wake_and_cancellation) {
    for (fate f : {fate::deadline, fate::stop, fate::both})
        expect_right(model::pass_beside<lock<>>(f, false, 6), bounded);
}

TEST(atomic_wait_queue, does_not_touch_a_destroyed_frame) {
    expect_right(model::pass_beside<lock<>>(fate::end, false, 6), bounded);
    expect_right(model::pass_beside<lock<>>(fate::end, true, 3), bounded);
}

TEST(atomic_wait_queue, grants_to_next_waiter_when_the_first_cancels) {
    for (fate f : {fate::deadline, fate::both})
        expect_right(model::pass_beside<lock<>>(f, true, 3), bounded);
}

// What is published is the last that is touched.
TEST(atomic_wait_queue, can_be_destroyed_once_the_new_state_is_seen) {
    for (bool changes : {false, true})
        expect_right(explore([=](execution& run) {
            std::optional<atomic_wait_queue> q(0);
            model::var<int> data{0};
            run.thread("sets", [&] {
                data.write(1);
                atomic_wait_queue::word w = 0;
                if (changes) {
                    model::require(q->change(w, atomic_wait_queue::unit), "nobody is in the way");
                } else {
                    static_cast<void>(q->lock());
                    q->unlock(atomic_wait_queue::unit);
                }
            });
            run.thread("sees", [&] {
                if (q->value() == 0) return;
                model::require(data.read() == 1, "what came before is there");
                q.reset();
            });
            run.go();
        }));
}

TEST(atomic_wait_queue, can_be_destroyed_by_the_woken_waiter) {
    expect_right(explore(
                     [](execution& run) {
                         std::optional<lock<>> l(false);
                         model::actor p;
                         run.thread("gives", [&] { l->give(); });
                         run.thread("takes", [&] {
                             lock<>::node n(*l);
                             p.wait([&](weft::waiter& w) { return l->take(w, n); });
                             l.reset();
                         });
                         run.go();
                         p.check();
                     },
                     {.deviations = 8}),
                 bounded);
}

TEST(atomic_wait_queue, checker_finds_lost_wake_when_freed_past_waiters) {
    expect_found(model::pass<lock<true>>(2, 1, 4), "deadlock");
}

}  // namespace
