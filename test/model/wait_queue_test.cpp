// weft/wait/wait_queue.hpp under the interleavings of a few waiters.
#include "weft/wait/wait_queue.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "model/bare_executor.hpp"
#include "model/names.hpp"
#include "model/turnstile.hpp"

namespace {

using namespace model::names;
using model::fate;

enum class manner {
    as_told,
    looks_without_lock,  // wrong: it may become free before the waiter is queued
    frees_in_between     // wrong: a waiter may come between the check of the queue and the freeing
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
            self.of.queue_.cancel(self);
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

TEST(wait_queue, loses_no_wake_and_wakes_no_waiter_twice) {
    expect_right(model::pass<right>(2, 1, 6), bounded);
    expect_right(model::pass<right>(2, 2, 4), bounded);
    expect_right(model::pass<right>(3, 1, 4), bounded);
}

TEST(wait_queue, has_one_winner_of_wake_and_cancellation) {
    for (fate f : {fate::deadline, fate::stop, fate::both})
        expect_right(model::pass_beside<right>(f, false, 8), bounded);
}

TEST(wait_queue, does_not_touch_a_destroyed_frame) {
    expect_right(model::pass_beside<right>(fate::end, false, 8), bounded);
    expect_right(model::pass_beside<right>(fate::end, true, 3), bounded);
}

TEST(wait_queue, grants_to_next_waiter_when_the_first_cancels) {
    for (fate f : {fate::deadline, fate::both})
        expect_right(model::pass_beside<right>(f, true, 3), bounded);
}

TEST(wait_queue, checker_finds_lost_wake_when_checked_without_the_lock) {
    expect_found(model::pass<door<manner::looks_without_lock>>(2, 1, 4), "deadlock");
}

TEST(wait_queue, checker_finds_lost_wake_when_freed_after_the_check) {
    expect_found(model::pass<door<manner::frees_in_between>>(2, 1, 4), "deadlock");
}

// waiter.hpp, W5: the event comes on the waiter's own thread too, where the claim is no atomic
// operation, before or after a stop, and from another thread.
enum class stop_comes { never, first, last };

class own_thread final : public model::bare_executor {
public:
    void post(weft::runnable&) noexcept override {
        static_cast<void>(frame.read());
        posts.fetch_add(1, std::memory_order_release);
    }
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }

    weft::atomic<int> posts{0};
    model::var<int> frame;  // written at the waiter's end
};

// `queues` two: wrong, the claims of two queues are not under one lock.
model::report claims_here_and_there(stop_comes stop, int queues) {
    return model::explore(
        [=](model::execution& run) {
            struct scene {
                weft::wait_queue queues[2];
                weft::wait_node nodes[2];
            };
            scene s;
            own_thread own;
            weft::atomic<bool> enlisted{false};
            const auto event = [&](weft::wait_queue& q) {
                weft::wait_node* n;
                {
                    const std::lock_guard held(q);
                    n = q.claim_first();
                }
                if (n != nullptr) n->owner->wake();
            };
            run.thread("own", [&] {
                weft::detail::this_thread_runs() = {nullptr, &own};
                {
                    weft::waiter w(own);
                    own.frame.write(1);
                    w.enlist("an event", nullptr, &s, [](weft::waiter& me) noexcept {
                        auto& all = me.operation<scene>();
                        for (int i = 0; i < 2; ++i) all.queues[i].cancel(all.nodes[i]);
                    });
                    for (int i = 0; i < queues; ++i) {
                        s.nodes[i].owner = &w;
                        const std::lock_guard held(s.queues[i]);
                        s.queues[i].push_back(s.nodes[i]);
                    }
                    enlisted.store(true, std::memory_order_release);
                    if (stop == stop_comes::first) w.stop(weft::stop_reason::user);
                    event(s.queues[0]);
                    if (stop == stop_comes::last) w.stop(weft::stop_reason::user);
                    model::wait_until(
                        [&] { return own.posts.load(std::memory_order_acquire) != 0; });
                    for (int i = 0; i < 2; ++i) s.queues[i].cancel(s.nodes[i]);
                    const bool stopped = w.status() == weft::wait_status::stopped;
                    model::require(!stopped || stop == stop_comes::first, "as the first says");
                }
                own.frame.write(0);
                weft::detail::this_thread_runs() = {};
            });
            run.thread("other", [&] {
                if (enlisted.load(std::memory_order_acquire))
                    event(s.queues[static_cast<std::size_t>(queues - 1)]);
            });
            run.go();
            model::require(own.posts.load() == 1, "it is woken once");
        },
        {.deviations = 6});
}

TEST(wait_queue, has_one_winner_when_the_event_is_on_the_waiters_thread) {
    for (const stop_comes s : {stop_comes::never, stop_comes::first, stop_comes::last})
        expect_right(claims_here_and_there(s, 1), bounded);
}
TEST(wait_queue, checker_finds_fault_when_a_wait_is_in_two_queues) {
    EXPECT_FALSE(claims_here_and_there(stop_comes::never, 2).passed);
}

}  // namespace
