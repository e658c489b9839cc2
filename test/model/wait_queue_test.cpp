// weft/wait/wait_queue.hpp under the interleavings of a few parties.
#include "weft/wait/wait_queue.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "model/expect.hpp"
#include "model/turnstile.hpp"

namespace {

using model::bounded;
using model::expect_found;
using model::expect_right;
using model::fate;

enum class manner {
    as_told,
    looks_without_lock,  // wrong: it may become free before the party stands in line
    frees_in_between     // wrong: somebody may come between the look at the line and the freeing
};

template <manner How>
class door {
public:
    struct node : weft::wait_node {
        explicit node(door& d) : of(d) {}
        door& of;
        bool given = false;
    };

    explicit door(bool is_free) : free_(is_free) {}

    bool take(weft::waiter& w, node& n) {
        n.owner = &w;
        w.enlist("a door", this, &n, [](weft::waiter& me) noexcept {
            auto& self = me.operation<node>();
            self.of.queue_.withdraw(self);
        });
        if (How != manner::looks_without_lock) {
            const std::lock_guard held(queue_);
            if (pass()) return false;
            queue_.push_back(n);
            return true;
        }
        {
            const std::lock_guard held(queue_);
            if (pass()) return false;
        }
        const std::lock_guard held(queue_);
        queue_.push_back(n);
        return true;
    }
    void give() {
        node* next;
        {
            const std::lock_guard held(queue_);
            next = static_cast<node*>(queue_.claim_first());
            if (next != nullptr) next->given = true;
            if (next == nullptr && How != manner::frees_in_between) free_.write(true);
        }
        if (next != nullptr) {
            next->owner->wake();
        } else if (How == manner::frees_in_between) {
            const std::lock_guard held(queue_);
            free_.write(true);
        }
    }
    bool is_at_rest() { return free_.read() && queue_.empty(); }

private:
    bool pass() {
        if (!free_.read()) return false;
        free_.write(false);
        return true;
    }

    weft::wait_queue queue_;
    model::var<bool> free_;
};

using right = door<manner::as_told>;

TEST(wait_queue, loses_no_wake_and_wakes_nobody_twice) {
    expect_right(model::pass<right>(2, 1, 6), bounded);
    expect_right(model::pass<right>(2, 2, 4), bounded);
    expect_right(model::pass<right>(3, 1, 4), bounded);
}

TEST(wait_queue, has_one_winner_of_a_wake_and_a_withdrawal) {
    for (fate f : {fate::deadline, fate::stop, fate::both})
        expect_right(model::pass_beside<right>(f, false, 8), bounded);
}

TEST(wait_queue, leaves_a_frame_that_ends_alone) {
    expect_right(model::pass_beside<right>(fate::end, false, 8), bounded);
    expect_right(model::pass_beside<right>(fate::end, true, 3), bounded);
}

TEST(wait_queue, gives_what_a_withdrawn_party_would_have_had_to_the_next) {
    for (fate f : {fate::deadline, fate::both})
        expect_right(model::pass_beside<right>(f, true, 3), bounded);
}

TEST(wait_queue, loses_a_wake_for_who_looks_without_the_lock) {
    expect_found(model::pass<door<manner::looks_without_lock>>(2, 1, 4), "deadlock");
}

TEST(wait_queue, loses_a_wake_for_who_frees_after_it) {
    expect_found(model::pass<door<manner::frees_in_between>>(2, 1, 4), "deadlock");
}

}  // namespace
