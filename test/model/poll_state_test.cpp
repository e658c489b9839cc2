// weft/poll/detail/poll_state.hpp under the interleavings of a thread that sets a value, a waiter
// that awaits the value, and a cause that ends the wait before.
#include "weft/poll/detail/poll_state.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "model/actor.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;
using model::fate;
using weft::wait_status;

// A future: the word, and the value that it publishes.
struct cell {
    weft::detail::poll_state state;
    model::var<int> value{0};

    void set(int n) {
        value.write(n);
        state.publish();
    }
    int take() {
        const int n = value.read();
        value.write(0);
        state.rearm();
        return n;
    }
    bool start(weft::waiter& w) {
        w.enlist("a cell", this, this,
                 [](weft::waiter& gone) noexcept { gone.operation<cell>().state.cancel(gone); });
        return state.enlist(w);
    }
};

TEST(poll_state, shows_the_setters_writes_to_the_awaiter) {
    expect_right(explore([](execution& run) {
        cell c;
        model::actor p;
        run.thread("sets", [&] { c.set(7); });
        run.thread("awaits", [&] {
            const wait_status how = p.wait([&](weft::waiter& w) { return c.start(w); }, fate::none);
            model::require(how == wait_status::woken, "it is told");
            model::require(c.take() == 7, "and it is all there");
        });
        run.go();
        p.check();
        model::require(!c.state.is_ready() && !c.state.is_awaited(), "it is as it was");
    }));
}

// A waiter that sees the value may destroy the word before the setting call returns.
TEST(poll_state, is_not_touched_after_it_is_set) {
    expect_right(explore([](execution& run) {
        auto c = std::make_unique<cell>();
        model::actor p;
        cell& shared = *c;
        run.thread("sets", [&] { shared.set(7); });
        run.thread("awaits", [&] {
            static_cast<void>(p.wait([&](weft::waiter& w) { return shared.start(w); }, fate::none));
            model::require(shared.take() == 7, "it is all there");
            c.reset();
        });
        run.go();
        p.check();
    }));
    expect_right(explore([](execution& run) {
        auto c = std::make_unique<cell>();
        cell& shared = *c;
        run.thread("sets", [&] { shared.set(7); });
        run.thread("looks", [&] {
            if (!shared.state.is_ready()) return;
            model::require(shared.take() == 7, "it is all there");
            c.reset();
        });
        run.go();
    }));
}

// The wait is ended meanwhile: the value is delivered to the waiter, or stays, and is never lost.
void ended_by(fate f) {
    expect_right(explore(
                     [=](execution& run) {
                         cell c;
                         model::actor p;
                         bool told = false;
                         run.thread("sets", [&] { c.set(7); });
                         run.thread("awaits", [&] {
                             told = p.wait([&](weft::waiter& w) { return c.start(w); }, f) ==
                                    wait_status::woken;
                             if (told) model::require(c.take() == 7, "it is all there");
                         });
                         run.go();
                         p.check();
                         model::require(c.state.is_ready() != told, "it was taken, or stays");
                         model::require(!c.state.is_awaited(), "nobody stands there");
                     },
                     {.deviations = 8}),
                 bounded);
}

TEST(poll_state, keeps_a_value_whose_awaiter_is_stopped) { ended_by(fate::stop); }
TEST(poll_state, keeps_a_value_whose_awaiter_times_out) {
    ended_by(fate::deadline);
    ended_by(fate::both);
}
TEST(poll_state, keeps_a_value_whose_awaiters_frame_is_destroyed) { ended_by(fate::end); }

TEST(poll_state, can_be_awaited_again_after_a_stopped_wait) {
    expect_right(explore(
                     [](execution& run) {
                         cell c;
                         model::actor first, second;
                         run.thread("sets", [&] { c.set(7); });
                         run.thread("awaits", [&] {
                             const auto start = [&](weft::waiter& w) { return c.start(w); };
                             if (first.wait(start, fate::stop) != wait_status::woken)
                                 model::require(
                                     second.wait(start, fate::none) == wait_status::woken, "told");
                             model::require(c.take() == 7, "it is all there");
                         });
                         run.go();
                         first.check();
                         second.check();
                     },
                     {.deviations = 8}),
                 bounded);
}

TEST(poll_state, can_be_set_again_once_seen_as_taken) {
    expect_right(explore([](execution& run) {
        cell c;
        c.set(1);
        run.thread("sets the next", [&] {
            model::wait_until([&] { return !c.state.is_ready(); });
            c.set(2);
        });
        run.thread("takes", [&] {
            model::require(c.take() == 1, "the first");
            model::wait_until([&] { return c.state.is_ready(); });
            model::require(c.take() == 2, "the second");
        });
        run.go();
    }));
}

TEST(poll_state, aborts_when_two_threads_set_it) {
    expect_found(explore([](execution& run) {
                     weft::detail::poll_state s;
                     run.thread("sets", [&] { s.publish(); });
                     run.thread("sets too", [&] { s.publish(); });
                     run.go();
                 }),
                 "a poll_future that is ready is set once more");
}

}  // namespace
