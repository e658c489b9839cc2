// weft/future/detail/future_state.hpp under the interleavings of a few threads.
#include "weft/future/detail/future_state.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::stop_reason;
using weft::detail::future_word;
using weft::detail::listener;
using weft::detail::stop_word;

// A thread that spins may see old values for ever: a body that waits for a notifier is walked up to
// this bound.
constexpr unsigned deviations = 10;
template <class F>
report all_of(F body) {
    return explore(body, {.deviations = deviations});
}

// Stored in the waiter's frame, whose end is a write.
struct waiting : listener {
    model::var<int> notify_count{0};
    model::var<int>* outcome = nullptr;
    waiting() : listener{tell} {}
    static void tell(listener& l) noexcept {
        auto& me = static_cast<waiting&>(l);
        me.notify_count.write(me.notify_count.read() + 1);
    }
};

struct shared {
    future_word word;
    model::var<int> outcome{0};

    bool give(int value) {
        if (!word.claim()) return false;
        outcome.write(value);
        if (listener* l = word.publish()) {
            l->notify(*l);
            word.set_notified();
        }
        return true;
    }
};

TEST(future_word, has_one_winner_and_publishes_its_outcome) {
    expect_right(all_of([](execution& run) {
        shared s;
        model::var<int> winners_a{0}, winners_b{0};
        run.thread("promise", [&] { winners_a.write(s.give(1)); });
        run.thread("stop", [&] { winners_b.write(s.give(2)); });
        run.thread("future", [&] {
            if (s.word.is_done()) model::require(s.outcome.read() != 0, "it is there");
        });
        run.go();
        model::require(winners_a.read() + winners_b.read() == 1, "one has won");
    }));
}

TEST(future_word, notifies_the_listener_or_reports_done) {
    expect_right(all_of([](execution& run) {
        shared s;
        waiting w;
        model::var<bool> attached{false};
        run.thread("promise", [&] { s.give(1); });
        run.thread("future", [&] {
            attached.write(s.word.attach(w));
            if (!attached.read()) model::require(s.outcome.read() == 1, "it is seen");
        });
        run.go();
        model::require(w.notify_count.read() == (attached.read() ? 1 : 0), "once, or not at all");
    }));
}

TEST(future_word, does_not_touch_a_detached_listener) {
    expect_right(all_of([](execution& run) {
                     shared s;
                     waiting w;
                     run.thread("promise", [&] { s.give(1); });
                     run.thread("future", [&] {
                         if (!s.word.attach(w)) return;
                         const bool in_time = s.word.detach();
                         model::require(w.notify_count.read() == (in_time ? 0 : 1),
                                        "told before, or never");
                         w.notify_count.write(7);  // the frame ends: a late notification would race
                     });
                     run.go();
                 }),
                 bounded);
}

TEST(stop_word, delivers_only_to_a_live_target_and_records_the_request) {
    expect_right(all_of([](execution& run) {
                     stop_word s;
                     model::var<int> target{0};
                     model::var<int> told{0};
                     run.thread("asker", [&] {
                         switch (s.ask(stop_reason::user)) {
                             case stop_word::answer::deliver:
                                 model::require(target.read() == 1, "it is made, and not gone");
                                 told.write(1);
                                 s.delivered();
                                 break;
                             default:
                                 break;
                         }
                     });
                     run.thread("runner", [&] {
                         target.write(1);
                         const stop_reason before = s.open();
                         const stop_reason after = s.close();
                         target.write(2);
                         if (before == stop_reason::none && after != stop_reason::none)
                             model::require(told.read() == 1, "who asked in between has delivered");
                     });
                     run.go();
                     model::require(s.asked() == stop_reason::user, "it is remembered");
                 }),
                 bounded);
}

TEST(stop_word, accepts_one_request) {
    expect_right(all_of([](execution& run) {
        stop_word s;
        model::var<int> a{0}, b{0};
        run.thread("asker", [&] { a.write(s.ask(stop_reason::user) != stop_word::answer::again); });
        run.thread("other",
                   [&] { b.write(s.ask(stop_reason::deadline) != stop_word::answer::again); });
        run.go();
        model::require(a.read() + b.read() == 1, "one");
    }));
}

}  // namespace
