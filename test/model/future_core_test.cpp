// weft/future/detail/future_core.hpp, with promise, limited and shared_future on top of it, under
// the interleavings of a thread that sets the outcome, one that requests a stop, and the executor,
// which drops the future as soon as it has its outcome. The executor never defers, so that all
// turns are posted. Each walk is bounded by its deviations.
#include "weft/future/detail/future_core.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "model/actor.hpp"
#include "model/home.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"
#include "model/stopper.hpp"
#include "weft/future/promise.hpp"
#include "weft/future/shared_future.hpp"
#include "weft/stop/stop_source.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::fate;
using model::home;
using model::parcel;
using weft::future;
using weft::promise;

// The last of the promise and the future frees what they share, whichever it is, and whether the
// handle is assigned to or detached.
TEST(future_core, is_freed_with_the_last_reference) {
    for (const bool detaches : {false, true})
        expect_right(explore(
                         [=](execution& run) {
                             home on(2);
                             model::var<int> content;
                             std::optional<promise<parcel>> p(std::in_place, on);
                             future<parcel> f = p->get_future();
                             run.thread("gives", [&] { p->set_value(content), p.reset(); });
                             run.thread("drops", [&] {
                                 if (f.is_ready()) f.async_get().take(nullptr, {}).look();
                                 if (detaches)
                                     f.detach();
                                 else
                                     f = {};
                             });
                             run.go();
                             expect_freed(content);
                         },
                         {.deviations = 6}),
                     bounded);
}

// The consumer owns the promise and destroys it with the future as soon as there is an outcome. The
// thread that set the outcome, or requested it, touches nothing afterwards to which it has no
// reference.
model::report hand_over(bool stops, unsigned deviations) {
    return explore(
        [=](execution& run) {
            home on(1);
            model::var<int> content;
            std::optional<promise<parcel>> p(std::in_place, on);
            std::optional<future<parcel>> f(p->get_future());
            weft::detail::future_core& core = weft::detail::core_of_future::core(*f);
            bool seen = false;
            if (stops) {  // by the next future's reference, which is released with the outcome
                run.thread("stops", [&] {
                    request_stop(core, weft::stop_reason::user);
                    on.leave();
                });
            } else {
                run.thread("gives", [&] { p->set_value(content), on.leave(); });
            }
            future<> last = f->then(weft::plain, [&](future<parcel> ended) {
                seen = true;
                model::require(stops || ended.has_value(), "it is what was given");
                ended = {};
                p.reset();
            });
            f.reset();
            run.thread("home", [&] { on.run([] {}); });
            run.go();
            model::require(seen && last.is_ready(), "the continuation is called");
            expect_freed(content);
        },
        {.deviations = deviations});
}

TEST(future_core, is_not_touched_after_its_outcome_is_set) {
    expect_right(hand_over(false, 5), bounded);
    expect_right(hand_over(true, 5), bounded);
}

// A promise, its continuation, and the continuation of that. A stop from the last future goes up
// the chain while a value comes down, and the executor drops the chain from its end.
model::report stop_of_chain(bool gives, unsigned deviations) {
    return explore(
        [=](execution& run) {
            home on(gives ? 2 : 1);
            model::var<int> content;
            std::optional<promise<parcel>> p(std::in_place, on);
            future<> last = p->get_future()
                                .then(weft::plain, [](parcel x) { return x; })
                                .then(weft::plain, [](const parcel& x) { x.look(); });
            model::stopper s(last);
            bool seen = false;
            if (gives) run.thread("gives", [&] { p->set_value(content), p.reset(), on.leave(); });
            run.thread("stops", [&] { s.stop(), on.leave(); });
            run.thread("home", [&] {
                on.run([&] {
                    if (!last.is_ready()) return;
                    seen = true;
                    last = {};
                });
            });
            run.go();
            model::require(seen, "there is an outcome");
            model::require(gives || p->stop_requested(), "the stop comes to the promise");
            expect_freed(content);
        },
        {.deviations = deviations});
}

TEST(future_core, is_kept_alive_by_its_continuation_until_that_is_done) {
    expect_right(stop_of_chain(true, 2), bounded);
    expect_right(stop_of_chain(false, 3), bounded);
}

// The function of then() returns another future: a stop is forwarded to the inner future. The inner
// future exists until the stop is forwarded, even if it gets its outcome meanwhile.
model::report stop_of_forwarding(bool gives, unsigned deviations) {
    return explore(
        [=](execution& run) {
            home on(gives ? 2 : 1);
            model::var<int> content;
            promise<> first(on);
            std::optional<promise<parcel>> p(std::in_place, on);
            future<parcel> inner = p->get_future();
            future<parcel> outer =
                first.get_future().then(weft::plain, [&] { return std::move(inner); });
            model::stopper s(outer);
            bool seen = false;
            first.set_value();
            if (gives) run.thread("gives", [&] { p->set_value(content), p.reset(), on.leave(); });
            run.thread("stops", [&] { s.stop(), on.leave(); });
            run.thread("home", [&] {
                on.run([&] {
                    if (!outer.is_ready()) return;
                    seen = true;
                    outer = {};
                });
            });
            run.go();
            model::require(seen, "there is an outcome");
            if (!inner.valid()) expect_freed(content);
        },
        {.deviations = deviations});
}

TEST(future_core, forwards_a_stop_to_the_future_whose_outcome_it_takes) {
    expect_right(stop_of_forwarding(true, 2), bounded);
    expect_right(stop_of_forwarding(false, 3), bounded);
}

// A wait that another cause has ended, or that has lost its frame, is not notified.
TEST(future_core, does_not_touch_a_wait_that_has_ended) {
    for (const fate f : {fate::none, fate::deadline, fate::stop, fate::end})
        expect_right(
            explore(
                [=](execution& run) {
                    home on(1);
                    model::actor waits;
                    model::var<int> content;
                    std::optional<promise<parcel>> p(std::in_place, on);
                    future<parcel> given = p->get_future();
                    run.thread("gives", [&] { p->set_value(content), p.reset(); });
                    run.thread("waits", [&] {
                        auto op = given.async_wait(weft::never);
                        static_cast<void>(waits.wait(
                            [&](weft::waiter& w) { return !op.ready() && op.start(w); }, f));
                    });
                    run.go();
                    waits.check();
                    given = {};
                    expect_freed(content);
                },
                {.deviations = 4}),
            bounded);
}

enum class limit { token, deadline, request };

model::report race_with(limit by, unsigned deviations) {
    return explore(
        [=](execution& run) {
            home on(by == limit::deadline ? 1 : 2);
            model::var<int> content;
            weft::stop_source stops;
            std::optional<promise<parcel>> p(std::in_place, on);
            future<parcel> f = p->get_future();
            // A deadline that has passed when the executor first checks it.
            f = by == limit::deadline ? f.with_timeout(weft::time_point{})
                                      : f.with_stop(stops.get_token());
            std::optional<model::stopper> s;
            run.thread("gives", [&] { p->set_value(content), p.reset(), on.leave(); });
            if (by == limit::token) run.thread("stops", [&] { stops.request_stop(), on.leave(); });
            if (by == limit::request) {
                s.emplace(f);
                run.thread("stops", [&] { s->stop(), on.leave(); });
            }
            bool seen = false;
            run.thread("home", [&] {
                on.run([&] {
                    if (!f.is_ready()) return;
                    seen = true;
                    f = {};
                });
            });
            run.go();
            model::require(seen, "there is an outcome");
            expect_freed(content);
        },
        {.deviations = deviations});
}

TEST(limited_future, has_one_outcome_when_value_and_stop_token_race) {
    expect_right(race_with(limit::token, 2), bounded);
}
TEST(limited_future, has_one_outcome_when_value_and_deadline_race) {
    expect_right(race_with(limit::deadline, 4), bounded);
}
TEST(limited_future, has_one_outcome_when_value_and_stop_request_race) {
    expect_right(race_with(limit::request, 2), bounded);
}

// It is made, followed and waited for on a thread of its own, before it has its outcome or after
// that, and all handles go meanwhile.
TEST(shared_future, notifies_each_continuation_and_waiter_once) {
    expect_right(explore(
                     [](execution& run) {
                         home on(2);
                         model::var<int> content;
                         model::actor waits;
                         std::optional<promise<parcel>> p(std::in_place, on);
                         future<parcel> f = p->get_future();
                         int told = 0;
                         const auto count = [&](const parcel& x) { x.look(), ++told; };
                         std::optional<future<>> a, b;
                         run.thread("gives", [&] { p->set_value(content), p.reset(), on.leave(); });
                         run.thread("shares", [&] {
                             weft::shared_future<parcel> s = f.share();
                             a = s.then(weft::plain, count);
                             b = s.then(weft::plain, count);
                             auto op = s.async_get();
                             const auto how =
                                 waits.wait([&](weft::waiter& w) { return op.start(w); });
                             op.take(nullptr, how).look();
                             s = {};
                             on.leave();
                         });
                         run.thread("home", [&] { on.run([] {}); });
                         run.go();
                         model::require(told == 2 && a->is_ready() && b->is_ready(), "each, once");
                         a.reset(), b.reset();
                         expect_freed(content);
                     },
                     {.deviations = 2}),
                 bounded);
}

}  // namespace
