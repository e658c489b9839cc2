// weft/coroutine/detail/state_word.hpp under the interleavings of threads that try to resume one
// coroutine: one of them has it at a time, and finds what the one before has left. The walks of two
// threads with one resume each are whole, those with more are bounded by three deviations.
#include "weft/coroutine/detail/state_word.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::coroutine_state;
using weft::detail::own_fp;
using weft::detail::state_word;

// A coroutine: its word, and what its resumer and itself write while it is held.
struct subject {
    state_word word;
    model::var<int> context{0};

    explicit subject(coroutine_state s) { word.hold(state_word::of(s, own_fp)); }

    // As try_resume(): runs it until it yields, or is done when `last`.
    bool try_resume(bool last = false) {
        if (!word.claim(coroutine_state::suspended) && !word.claim(coroutine_state::ready))
            return false;
        context.write(context.read() + 1);
        if (last)
            word.set(coroutine_state::done);
        else
            word.set_all(state_word::of(coroutine_state::suspended, own_fp));
        return true;
    }
};

constexpr unsigned whole = 20;

report contend(coroutine_state from, int threads, int times, bool last, unsigned deviations) {
    const auto body = [=](execution& run) {
        subject s(from);
        int resumed = 0;
        for (int n = 0; n < threads; ++n)
            run.thread("resumer", [&] {
                for (int t = 0; t < times; ++t) resumed += s.try_resume(last);
            });
        run.go();
        model::require(s.context.read() == resumed, "each resume was alone");
        model::require(!last || resumed == 1, "one has run it to its end");
        model::require(s.word.has(own_fp), "what is known of it stays");
    };
    return explore(body, {.deviations = deviations});
}

TEST(state_word, admits_one_resumer_at_a_time_and_publishes_its_writes) {
    expect_right(contend(coroutine_state::suspended, 2, 1, false, whole));
    expect_right(contend(coroutine_state::ready, 2, 1, false, whole));
    expect_right(contend(coroutine_state::suspended, 2, 2, false, 3), bounded);
    expect_right(contend(coroutine_state::suspended, 3, 1, false, 3), bounded);
}

TEST(state_word, lets_one_thread_run_the_coroutine_to_its_end) {
    expect_right(contend(coroutine_state::suspended, 2, 1, true, whole));
    expect_right(contend(coroutine_state::ready, 2, 1, true, whole));
    expect_right(contend(coroutine_state::ready, 3, 1, true, 3), bounded);
}

// As in try_hold(), when there is no stack for it.
TEST(state_word, is_ready_again_after_a_failed_start) {
    const auto body = [](execution& run) {
        subject s(coroutine_state::ready);
        int resumed = 0;
        run.thread("fails", [&] {
            if (!s.word.claim(coroutine_state::ready)) return;
            s.context.write(s.context.read());
            s.word.set(coroutine_state::ready);
        });
        run.thread("resumer", [&] { resumed += s.try_resume(); });
        run.go();
        model::require(s.context.read() == resumed, "nothing ran but what was told");
        model::require(s.try_resume(), "it is free");
    };
    expect_right(explore(body, {.deviations = whole}));
}

// A thread that only checks the state sees what the coroutine wrote, once it sees that the
// coroutine is done. A resumer's store is its own.
TEST(state_word, shows_the_coroutines_writes_once_done) {
    expect_right(explore([](execution& run) {
        subject s(coroutine_state::suspended);
        run.thread("resumer", [&] {
            s.word.hold(state_word::of(coroutine_state::running, own_fp));
            s.context.write(1);
            s.word.set(coroutine_state::done);
        });
        run.thread("looks", [&] {
            if (s.word.state() == coroutine_state::done)
                model::require(s.context.read() == 1, "it is all there");
        });
        run.go();
    }));
}

}  // namespace
