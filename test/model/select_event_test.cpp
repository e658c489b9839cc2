// weft/sync/detail/select_event.hpp, by a select of a future and a channel, under the interleavings
// of the select with a thread that gives the outcome and one that sends an item.
#include "weft/sync/detail/select_event.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/agent.hpp"
#include "model/home.hpp"
#include "model/names.hpp"
#include "weft/future/promise.hpp"
#include "weft/future/select_case.hpp"

namespace {

using model::agent;
using model::home;
using namespace model::names;

TEST(select_event, one_case_runs_and_the_other_source_keeps_what_it_has) {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}})
        expect_right(explore(
                         [=](execution& run) {
                             home on(1);
                             weft::promise<int> p(on);
                             weft::future<int> f = p.get_future();
                             weft::channel<int> c(capacity);
                             agent a;
                             int outcomes = 0, items = 0;
                             bool sent = false;
                             run.thread("selects", [&] {
                                 a.run([&] {
                                     weft::select(
                                         weft::on_ready(f, [&] { ++outcomes; }),
                                         weft::on_recv(c, [&](int i) { items += i == 5; }));
                                 });
                             });
                             run.thread("gives", [&] { p.set_value(7); });
                             run.thread("sends", [&] { sent = static_cast<bool>(c.try_send(5)); });
                             run.go();
                             a.check();
                             model::require(outcomes + items == 1, "one case has run");
                             const bool left = static_cast<bool>(c.try_recv());
                             model::require(items + left == sent, "the item is in one place");
                             model::require(f.is_ready() && f.async_get().take(nullptr, {}) == 7,
                                            "the future keeps its outcome");
                         },
                         {.deviations = 2}),
                     bounded);
}

// Two events without a channel: one case runs, and both outcomes are there.
TEST(select_event, waits_for_the_first_of_two_futures) {
    expect_right(explore(
                     [](execution& run) {
                         home on(1);
                         weft::promise<int> p(on), q(on);
                         weft::future<int> f = p.get_future(), g = q.get_future();
                         agent a;
                         int ran = 0;
                         run.thread("selects", [&] {
                             a.run([&] {
                                 weft::select(weft::on_ready(f, [&] { ++ran; }),
                                              weft::on_ready(g, [&] { ++ran; }));
                             });
                         });
                         run.thread("gives", [&] { p.set_value(1); });
                         run.thread("gives too", [&] { q.set_value(2); });
                         run.go();
                         a.check();
                         model::require(ran == 1, "one case has run");
                         model::require(f.is_ready() && g.is_ready(), "both have their outcomes");
                     },
                     {.deviations = 2}),
                 bounded);
}

}  // namespace
