// weft/sched/timer.cpp under the interleavings of the executor's thread, of a thread that makes a
// timer and stops it, and of a third thread that also stops it. Time stands still: an armed timer
// fires whenever nothing is posted (small_loop.hpp). Laws: a timer is armed, disarmed and called by
// its executor's thread; a prevented call does not come, and a call that was not prevented has come
// when stop_and_join() returns; the timer's state is destroyed once, after the last call. The walks
// are bounded by deviations, except the one of the timer that is ended by its own call.
#include "weft/sched/timer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>

#include "model/agent.hpp"
#include "model/names.hpp"
#include "model/small_loop.hpp"

namespace {

using model::agent;
using namespace model::names;
using model::small_loop;
using weft::timer;

constexpr weft::time_point early{std::chrono::seconds(1)};
constexpr weft::duration once{};
constexpr weft::duration each_second = std::chrono::seconds(1);

// State that the function of a timer uses: its end is written when the last copy of the function is
// destroyed.
struct used {
    model::var<int> calls{0};
    model::var<int> ends{0};

    struct function {
        used* of;
        explicit function(used& u) : of(&u) {}
        function(function&& other) noexcept : of(std::exchange(other.of, nullptr)) {}
        ~function() {
            if (of == nullptr) return;
            static_cast<void>(of->calls.read());  // after all that it was used for
            of->ends.write(of->ends.read() + 1);
        }
        void operator()() const { of->calls.write(of->calls.read() + 1); }
    };
};

// After all threads, when no handle is left.
void check(small_loop& on, used& u, int least, int most) {
    on.drain();
    require(!on.has_timers(), "nothing stays armed");
    require(u.ends.read() == 1, "the function goes, once");
    require(u.calls.read() >= least && u.calls.read() <= most, "so often it is called");
}

// One thread makes it and stops it.
TEST(timer, calls_once_unless_its_stop_prevents_it) {
    expect_right(explore(
                     [](execution& run) {
                         small_loop on(1);
                         used u;
                         bool prevented = false;
                         run.thread("owner", [&] {
                             {
                                 timer t(on, early, once, used::function(u));
                                 prevented = t.stop();
                                 require(!t.stop(), "a second stop prevents nothing");
                             }
                             on.leave();
                         });
                         run.thread("loop", [&] { on.run(); });
                         run.go();
                         const int calls = prevented ? 0 : 1;
                         check(on, u, calls, calls);
                     },
                     {.deviations = 6}),
                 bounded);
}

// The owner uses what the function uses as soon as no call runs any more.
report join(weft::duration period, int fires, const model::options& o) {
    return explore(
        [=](execution& run) {
            small_loop on(1, fires);
            used u;
            agent a;
            run.thread("owner", [&] {
                a.run([&] {
                    timer t(on, early, period, used::function(u));
                    const bool prevented = t.stop_and_join();
                    const int calls = u.calls.read();  // races with a call that runs
                    require(calls == (prevented ? 0 : 1) || period != once,
                            "a call that was not prevented has been made");
                    u.calls.write(calls + 10);  // a later call would race
                });
                on.leave();
            });
            run.thread("loop", [&] { on.run(); });
            run.go();
            a.check();
            check(on, u, 10, 10 + fires);
        },
        o);
}

TEST(timer, makes_no_call_once_joined) {
    expect_right(join(once, 1, {.deviations = 5}), bounded);
    expect_right(join(each_second, 2, {.deviations = 4}), bounded);
}

// Two stop it at once, and the second waits for the call; the handle stays with the body.
TEST(timer, is_stopped_by_one_of_two_threads) {
    expect_right(explore(
                     [](execution& run) {
                         small_loop on(2);
                         used u;
                         agent a;
                         std::optional<timer> t;
                         t.emplace(on, early, once, used::function(u));
                         bool prevented[2] = {};
                         run.thread("stops", [&] {
                             prevented[0] = t->stop();
                             on.leave();
                         });
                         run.thread("joins", [&] {
                             a.run([&] {
                                 prevented[1] = t->stop_and_join();
                                 static_cast<void>(u.calls.read());
                             });
                             on.leave();
                         });
                         run.thread("loop", [&] { on.run(); });
                         run.go();
                         a.check();
                         require(!prevented[0] || !prevented[1], "one of them prevents the call");
                         t.reset();
                         const int calls = prevented[0] || prevented[1] ? 0 : 1;
                         check(on, u, calls, calls);
                     },
                     {.deviations = 3}),
                 bounded);
}

// A call stops or ends its own timer, while another thread stops it.
report stop_from_the_call(bool ends, const model::options& o) {
    return explore(
        [=](execution& run) {
            small_loop on(1, 3);
            used u;
            std::optional<timer> t;
            t.emplace(on, early, each_second, [&, f = used::function(u)] {
                f();
                if (!ends) {
                    static_cast<void>(t->stop());
                    return;
                }
                t.reset();
            });
            run.thread("stops", [&] {
                if (!ends) static_cast<void>(t->stop());
                on.leave();
            });
            run.thread("loop", [&] { on.run(); });
            run.go();
            t.reset();
            check(on, u, ends ? 1 : 0, 1);
        },
        o);
}

TEST(timer, can_be_stopped_in_its_own_call) {
    expect_right(stop_from_the_call(false, {.deviations = 6}), bounded);
    expect_right(stop_from_the_call(true, {.deviations = 6}));
}

}  // namespace
