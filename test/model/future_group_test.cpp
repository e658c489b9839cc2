// weft/future/detail/group.hpp, and multi_source_core.hpp beneath it, under the interleavings of
// the threads that set the members' outcomes, of a stop, and of the executor where the group counts
// and is freed. Bounded by deviations: one deviation was enough to find a prompt that came after
// the push.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "model/home.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"
#include "model/stopper.hpp"
#include "weft/future/detail/group.hpp"
#include "weft/future/when.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::home;
using model::parcel;
using weft::future;
using weft::promise;

// All with so few deviations, and some with many.
std::array<model::options, 2> walks(unsigned deviations) {
    return {{{.deviations = deviations}, {.random_schedules = 20'000}}};
}

// The consumer is the executor's thread. It drops the group as soon as the outcome is there, so
// that a thread that still uses the group meets the group's end. The setting threads drop the
// promises.
template <class Make>
model::report race_of_two(Make make, bool stops, const model::options& how) {
    return explore(
        [=](execution& run) {
            home on(stops ? 3 : 2);
            model::var<int> of_a, of_b;
            std::optional<promise<parcel>> a(std::in_place, on), b(std::in_place, on);
            auto all = make(a->get_future(), b->get_future());
            bool seen = false;
            const auto give = [&](std::optional<promise<parcel>>& p, model::var<int>& content) {
                p->set_value(content);
                p.reset();
                on.leave();
            };
            run.thread("a", [&] { give(a, of_a); });
            run.thread("b", [&] { give(b, of_b); });
            std::optional<model::stopper> s;
            if (stops) {
                s.emplace(all);
                run.thread("stop", [&] { s->stop(), on.leave(); });
            }
            run.thread("home", [&] {
                on.run([&] {
                    if (!all.is_ready()) return;
                    model::require(all.has_value() || stops, "it is a value");
                    all = {};
                    seen = true;
                });
            });
            run.go();
            model::require(seen, "there is an outcome");
            expect_freed(of_a);
            expect_freed(of_b);
        },
        how);
}
const auto all_of = [](future<parcel> a, future<parcel> b) {
    return weft::when_all(std::move(a), std::move(b));
};
const auto any_of = [](future<parcel> a, future<parcel> b) {
    return weft::when_any(std::move(a), std::move(b));
};

TEST(future_group, is_not_touched_once_it_has_its_outcome) {
    for (const model::options& how : walks(2)) {
        expect_right(race_of_two(all_of, false, how), bounded);
        expect_right(race_of_two(any_of, false, how), bounded);
    }
}

TEST(future_group, is_not_touched_after_its_outcome_when_stopped) {
    for (const model::options& how : walks(1)) {
        expect_right(race_of_two(all_of, true, how), bounded);
        expect_right(race_of_two(any_of, true, how), bounded);
    }
}

}  // namespace
