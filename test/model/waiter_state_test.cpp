// weft/wait/detail/waiter_state.hpp under every interleaving: the event, the deadline and a stop
// claim one wait, and one of them brings its owner back.
#include "weft/wait/detail/waiter_state.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::wait_status;

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

// One wait. It is published as by the queue that holds the waiter, and its owner is resumed as by
// an executor.
struct wait {
    wait() {
        // Not the first wait of this waiter.
        static_cast<void>(state.claim(wait_status::woken));
        state.rearm();
    }

    void enlist(std::memory_order how) {
        frame.write(1);
        enlisted.store(true, how);
    }
    void claim_and_post(wait_status how, std::memory_order post) {
        if (!state.claim(how)) return;
        model::require(frame.read() == 1, "who claims sees what the waiter wrote");
        ending.write(static_cast<int>(how));
        posts.fetch_add(1, post);
    }
    void come_back() {
        model::wait_until([&] { return posts.load(acquire) != 0; });
        model::require(static_cast<int>(state.status()) == ending.read(), "as the winner said");
        frame.write(0);  // the frame ends: no loser reads it
    }

    weft::detail::waiter_state state;
    weft::atomic<bool> enlisted{false};
    weft::atomic<int> posts{0};
    model::var<int> frame{0};
    model::var<int> ending{0};  // of two winners, the writes race
};

// The deadline and the stop come on the waiter's own thread, in either order.
report event_against_owner(wait_status first, wait_status second,
                           std::memory_order publish = release, std::memory_order post = release) {
    return explore([=](execution& run) {
        wait w;
        run.thread("event", [&] {
            if (w.enlisted.load(publish == release ? acquire : relaxed))
                w.claim_and_post(wait_status::woken, post);
        });
        run.thread("owner", [&] {
            w.enlist(publish);
            w.claim_and_post(first, post);
            w.claim_and_post(second, post);
            w.come_back();
        });
        run.go();
        model::require(w.posts.load() == 1, "one has won");
    });
}

TEST(waiter_state, has_one_winner_of_event_deadline_and_stop) {
    expect_right(event_against_owner(wait_status::timed_out, wait_status::stopped));
    expect_right(event_against_owner(wait_status::stopped, wait_status::timed_out));
}

TEST(waiter_state, has_one_winner_of_three_claiming_threads) {
    expect_right(explore(
        [](execution& run) {
            wait w;
            w.enlist(release);
            for (wait_status how :
                 {wait_status::woken, wait_status::timed_out, wait_status::stopped})
                run.thread("claimant", [&, how] { w.claim_and_post(how, release); });
            run.thread("owner", [&] { w.come_back(); });
            run.go();
            model::require(w.posts.load() == 1, "one has won");
        },
        {.deviations = 20}));
}

// The claim orders nothing by itself: the queue does, and the executor.
TEST(waiter_state, needs_a_queue_that_publishes_the_waiter) {
    expect_found(event_against_owner(wait_status::timed_out, wait_status::stopped, relaxed),
                 "a data race");
}

TEST(waiter_state, needs_an_executor_that_publishes_the_ending) {
    expect_found(
        event_against_owner(wait_status::timed_out, wait_status::stopped, release, relaxed),
        "a data race");
}

TEST(waiter_state, shows_the_winners_writes_to_a_poller) {
    expect_right(explore([](execution& run) {
        weft::detail::waiter_state s;
        model::var<int> payload{0};
        run.thread("claimant", [&] {
            payload.write(1);
            static_cast<void>(s.claim(wait_status::woken));
        });
        run.thread("poller", [&] {
            if (s.is_pending()) return;
            model::require(payload.read() == 1, "it is seen");
            model::require(s.status() == wait_status::woken, "and so is the ending");
        });
        run.go();
    }));
}

}  // namespace
