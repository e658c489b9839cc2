// weft/wait/flow.hpp under every interleaving of those who ask a flow's home for something (a stop,
// a turn between two of its own) and the flow that moves to another, after which its old home ends.
// Bounded by deviations, as the move spins while it waits.
#include "weft/wait/flow.hpp"

#include <gtest/gtest.h>

#include <array>

#include "model/expect.hpp"
#include "model/model.hpp"
#include "weft/wait/executor.hpp"

namespace {

using model::bounded;
using model::execution;
using model::expect_right;
using model::explore;
using model::report;

// An executor that only counts what is posted to it, and may end.
class home final : public weft::executor {
public:
    explicit home(model::var<int>& life) : life_(life) {}

    void post(weft::runnable&) noexcept override {
        static_cast<void>(
            life_.read());  // whoever ends it writes there: a race, if it is used then
        posts.fetch_add(1, std::memory_order_release);
    }
    void end() { life_.write(1); }
    void forget(weft::runnable&) noexcept override { unused(); }
    void arm(weft::timer_node&) noexcept override { unused(); }
    void disarm(weft::timer_node&) noexcept override { unused(); }
    weft::time_point now() const noexcept override { return {}; }
    void defer(std::coroutine_handle<>, weft::flow*) noexcept override { unused(); }
    void enroll(weft::flow&) noexcept override { unused(); }
    void strike_off(weft::flow&) noexcept override { unused(); }
    bool is_here() const noexcept override { return false; }

    weft::atomic<int> posts{0};

private:
    [[noreturn]] static void unused() { model::fail("a home is asked for more than to post"); }

    model::var<int>& life_;
};

const weft::flow_kind kind = {"test",
                              nullptr,
                              [](weft::flow&) noexcept {},
                              [](weft::flow&) noexcept {},
                              [](weft::flow&) noexcept {},
                              [](const weft::flow&) noexcept { return weft::party{}; }};

struct asking {
    bool stops = false;  // one requests a stop
    int posts = 0;       // so many post something
    bool to_another = true;
};

// The flow moves, and the home that it has left ends; then it takes in what has been asked for: the
// stop is seen there, or a message is at the new home.
report move_while(asking a, unsigned deviations) {
    return explore(
        [=](execution& run) {
            model::var<int> life_of_first;
            model::var<int> life_of_second;
            home first(life_of_first);
            home second(life_of_second);
            weft::flow f(kind);
            f.home = &first;
            std::array<weft::runnable, 2> errands;
            std::array<bool, 2> posted{};
            bool seen = false;
            if (a.stops)
                run.thread("stops", [&] {
                    model::require(f.request_stop(weft::stop_reason::user), "it is the first");
                });
            for (int i = 0; i < a.posts; ++i)
                run.thread("posts", [&, i] {
                    const auto n = static_cast<std::size_t>(i);
                    posted[n] = f.post_home(errands[n]);
                });
            run.thread("moves", [&] {
                f.move_to(a.to_another ? &second : nullptr);
                first.end();
                seen = f.stop.stop_requested();
            });
            run.go();
            int expected = 0;
            for (const bool p : posted) expected += p;
            const int messages = first.posts.load() + second.posts.load() - expected;
            model::require(messages == 0 || messages == 1, "a stop is one message at most");
            if (a.stops && a.to_another)  // else it is found by whoever starts it again
                model::require(seen || messages == 1, "a stop is told, or found by the new home");
            if (a.to_another)
                for (int i = 0; i < a.posts; ++i)
                    model::require(posted[static_cast<std::size_t>(i)], "it always has a home");
        },
        {.deviations = deviations});
}

TEST(flow, leaves_a_home_when_nobody_uses_it_any_more) {
    for (bool to_another : {true, false}) {
        expect_right(move_while({.stops = true, .to_another = to_another}, 12), bounded);
        expect_right(move_while({.posts = 1, .to_another = to_another}, 12), bounded);
    }
}

// They are counted: the first to leave does not let the flow go.
TEST(flow, leaves_a_home_when_the_last_of_several_has_left_it) {
    for (bool to_another : {true, false}) {
        expect_right(move_while({.posts = 2, .to_another = to_another}, 4), bounded);
        expect_right(move_while({.stops = true, .posts = 1, .to_another = to_another}, 4), bounded);
    }
}

}  // namespace
