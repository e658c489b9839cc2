// weft/future/poll_event.hpp, with the futures that wait for it (poll.hpp), under the interleavings
// of a set, the event's end, a stop, and the executor where the future is polled and freed. The
// walks are bounded by their deviations.
#include "weft/future/poll_event.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/home.hpp"
#include "model/names.hpp"
#include "model/stopper.hpp"
#include "weft/future/promise.hpp"

namespace {

using namespace model::names;
using model::home;
using weft::future;

enum class act { set, set_twice, end };

// A future waits for an event that another thread sets, and a third may stop it; it is dropped as
// soon as it has its outcome. A poll after the set reports ready.
model::report race_with(act a, bool stops, unsigned deviations) {
    return explore(
        [=](execution& run) {
            home on(stops ? 2 : 1);
            std::optional<weft::poll_event> e(std::in_place);
            weft::atomic<int> acts{0};
            future<int> f = weft::make_ready_future(on, 1).poll_on(weft::plain, *e, [&] {
                return acts.load(std::memory_order_relaxed) == (a == act::set_twice ? 2 : 1);
            });
            run.thread("acts", [&] {
                for (int i = a == act::set_twice ? 2 : 1; i != 0; --i) {
                    if (a != act::end) acts.fetch_add(1, std::memory_order_relaxed);
                    a == act::end ? e.reset() : e->set();
                }
                on.leave();
            });
            std::optional<model::stopper> s;
            if (stops) {
                s.emplace(f);
                run.thread("stop", [&] { s->stop(), on.leave(); });
            }
            bool seen = false;
            run.thread("home", [&] {
                on.run([&] {
                    if (!f.is_ready()) return;
                    model::require(f.has_value() || stops || f.error() == weft::errc::closed,
                                   "it ends with a yes, a stop, or the event");
                    f = {};
                    seen = true;
                });
            });
            run.go();
            model::require(seen, "it ends");
        },
        {.deviations = deviations});
}

TEST(poll_event, loses_no_set) {
    expect_right(race_with(act::set, false, 5), bounded);
    expect_right(race_with(act::set_twice, false, 4), bounded);
}

TEST(poll_event, does_not_touch_a_stopped_future) {
    expect_right(race_with(act::set, true, 2), bounded);
}

TEST(poll_event, can_be_destroyed_before_its_waiting_futures) {
    expect_right(race_with(act::end, false, 5), bounded);
    expect_right(race_with(act::end, true, 2), bounded);
}

}  // namespace
