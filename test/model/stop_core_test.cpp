// weft/stop/detail/stop_core.hpp under the interleavings of threads that request a stop, attach and
// detach a callback meanwhile, and destroy the source. The walks are bounded by deviations.
#include "weft/stop/detail/stop_core.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/names.hpp"
#include "weft/stop/stop_callback.hpp"
#include "weft/stop/stop_source.hpp"

namespace {

using namespace model::names;

TEST(stop_core, calls_a_callback_at_most_once_and_not_after_detaching) {
    for (bool child : {false, true})
        expect_right(explore(
                         [=](execution& run) {
                             weft::stop_source all;
                             std::optional<weft::stop_source> one;
                             if (child) one.emplace(all.get_token());
                             model::var<int> calls{0};  // of the waiter's frame
                             run.thread("waits", [&] {
                                 const auto note = [&](weft::stop_reason) noexcept {
                                     calls.write(calls.read() + 1);
                                 };
                                 weft::stop_source& by = child ? *one : all;
                                 {
                                     const weft::stop_callback c(by.get_token(), note);
                                 }
                                 const int seen = calls.read();
                                 calls.write(0);  // the frame is another's now
                                 model::require(seen <= 1, "it is called once");
                                 model::require(seen == 0 || by.stop_requested(), "for a reason");
                             });
                             run.thread("stops", [&] { all.request_stop(); });
                             run.go();
                             model::require(calls.read() == 0, "it is not called afterwards");
                             all.check();
                         },
                         {.deviations = 4}),
                     bounded);
}

TEST(stop_core, has_one_first_request_that_calls_every_callback) {
    expect_right(explore(
                     [](execution& run) {
                         weft::stop_source s;
                         int calls = 0;
                         weft::atomic<int> firsts{0};
                         const auto note = [&](weft::stop_reason) noexcept { ++calls; };
                         const weft::stop_callback a(s.get_token(), note);
                         const weft::stop_callback b(s.get_token(), note);
                         for (int i = 0; i < 2; ++i)
                             run.thread("stops", [&] {
                                 if (s.request_stop())
                                     firsts.fetch_add(1, std::memory_order_relaxed);
                             });
                         run.go();
                         model::require(firsts.load() == 1 && calls == 2, "the first calls both");
                     },
                     {.deviations = 4}),
                 bounded);
}

// By asking, or by being refused: as the second to request a stop, or with a callback, which is
// then called on the spot.
TEST(stop_core, shows_writes_before_the_request_once_it_is_seen) {
    enum class by { asking, requesting, attaching };
    for (const by how : {by::asking, by::requesting, by::attaching})
        expect_right(explore(
                         [=](execution& run) {
                             weft::stop_source s;
                             const weft::stop_token token = s.get_token();
                             model::var<int> said{0};
                             run.thread("stops", [&] {
                                 said.write(1);
                                 s.request_stop();
                             });
                             run.thread("sees", [&] {
                                 const auto look = [&] {
                                     model::require(said.read() == 1, "what was said is there");
                                 };
                                 if (how == by::asking) {
                                     if (token.stop_requested()) look();
                                 } else if (how == by::requesting) {
                                     if (!s.request_stop()) look();
                                 } else {
                                     const auto called = [&](weft::stop_reason) noexcept {
                                         look();
                                     };
                                     const weft::stop_callback c(token, called);
                                 }
                             });
                             run.go();
                         },
                         {.deviations = 4}),
                     how != by::asking);
}

// A thread that sees the request may destroy the source while another thread still uses it.
TEST(stop_core, destructor_waits_for_a_request_in_progress) {
    expect_right(explore(
                     [](execution& run) {
                         std::optional<weft::stop_source> s;
                         s.emplace();
                         run.thread("stops", [&] { s->request_stop(); });
                         run.thread("ends", [&] {
                             if (s->stop_requested()) s.reset();
                         });
                         run.go();
                     },
                     {.deviations = 6}),
                 bounded);
}

}  // namespace
