// weft/task/task_flow.cpp under the interleavings of a task's end with the agents that wait for it,
// take its result, do without it, or request its stop, while it may migrate to another loop in the
// turn that ends its wait. Bounded by deviations, because a migration spins while another thread
// uses the old executor; with more deviations, executions are chosen at random.
#include "weft/task/detail/task_flow.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "model/actor.hpp"
#include "model/loop.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"
#include "model/signal.hpp"
#include "weft/task/detail/task_run.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::fate;
using model::parcel;
using model::signal;
using weft::operator co_await;
using weft::task;
using weft::detail::task_end;
using weft::detail::task_run;

// Its frame, and its result, are seen to go.
task<parcel> makes(model::var<int>& content, model::var<int>& frame) {
    const parcel of_frame(frame);
    co_return parcel(content);
}

// What runs it may end with it.
void tell_end(weft::detail::task_flow& f, weft::atomic<bool>& over) {
    f.on_end_of = &over;
    f.on_end = [](void* at) noexcept {
        static_cast<weft::atomic<bool>*>(at)->store(true, std::memory_order_release);
    };
}

enum class use { joins, gives_up, does_without };

model::report end_beside(use how, fate f, unsigned deviations) {
    return explore(
        [=](execution& run) {
            weft::atomic<bool> over{false};
            model::loop on;
            model::actor waits;
            model::var<int> content, frame;
            std::optional<task_run<parcel>> r(std::in_place, makes(content, frame), on);
            weft::detail::task_flow& t = **r;
            tell_end(t, over);
            t.references.fetch_add(1);  // as of a late message: the frame ends before it
            t.post_first_turn();
            run.thread("runs",
                       [&] { on.run([&] { return over.load(std::memory_order_acquire); }); });
            run.thread("has", [&] {
                if (how != use::does_without) {
                    task_end end(**r, false);
                    const auto start = [&](weft::waiter& w) {
                        return !end.ready() && end.start(w);
                    };
                    waits.wait(start, f);
                    if (how == use::joins) r->take().look();  // also if it has ended already
                }
                r.reset();
            });
            run.go();
            waits.check();
            require(over.load(), "its end is told");
            expect_freed(content);
            expect_freed(frame);
            t.release();
        },
        {.deviations = deviations});
}

TEST(task_flow, gives_its_result_to_the_waiter_and_is_freed) {
    expect_right(end_beside(use::joins, fate::none, 4), bounded);
}
TEST(task_flow, does_not_touch_a_wait_that_has_ended) {
    for (const fate f : {fate::deadline, fate::stop, fate::end})
        expect_right(end_beside(use::gives_up, f, 3), bounded);
}
TEST(task_flow, is_freed_when_done_if_its_result_is_unused) {
    expect_right(end_beside(use::does_without, fate::none, 4), bounded);
}

task<> does_nothing(parcel) { co_return; }

// Complete. Of the two users, the last to release its reference destroys the frame.
TEST(task_flow, is_freed_with_its_last_reference_if_never_started) {
    expect_right(explore(
        [](execution& run) {
            model::loop on;
            model::var<int> argument;
            task_run<void> r(does_nothing(parcel(argument)), on);
            weft::detail::task_flow& t = *r;
            t.references.fetch_add(1);
            run.thread("has", [&] {
                require(argument.read() != 0, "it is there");
                r = {};
            });
            run.thread("tells", [&] {
                require(argument.read() != 0, "it is there");
                t.release();
            });
            run.go();
            expect_freed(argument);
        },
        {.deviations = 20}));
}

task<> waits_for(signal& s, signal& never, model::var<int>& own) {
    const parcel of_frame(own);
    co_await signal::wait(s);
    of_frame.look();
    co_await signal::wait(never);
}

// A worker offloads the turn in which the wait has ended to another worker, and a stop comes
// meanwhile. The stop is delivered on either worker, in that wait or the next.
model::report stop_beside_a_move(const model::options& how) {
    return explore(
        [=](execution& run) {
            weft::atomic<bool> over{false};
            model::loop a, b;
            model::var<int> own;
            signal s, never;
            a.gives_one_to(b);
            task_run<void> r(waits_for(s, never, own), nullptr);
            tell_end(*r, over);
            r->post_first_turn(a);
            r->references.fetch_add(1);
            run.thread("sets", [&] { s.set(); });
            run.thread("stops", [&] {
                require(r->request_stop(weft::stop_reason::user), "it is the first");
                r->release();
            });
            const auto is_over = [&] { return over.load(std::memory_order_acquire); };
            run.thread("a", [&] { a.run(is_over); });
            run.thread("b", [&] { b.run(is_over); });
            run.go();
            require(r->member.stopped_by == weft::stop_reason::user, "the stop is told");
            expect_freed(own);
            r = {};
            a.end(), b.end();
            require(a.living() == 0 && b.living() == 0, "it is enrolled nowhere");
        },
        how);
}

task<> looks_where_it_is(signal& s, weft::executor*& at) {
    co_await signal::wait(s);
    at = weft::current_executor();
}

// The loop would offload it, and no other executor runs anything.
TEST(task_flow, stays_on_the_loop_it_was_started_on) {
    expect_right(explore(
                     [](execution& run) {
                         weft::atomic<bool> over{false};
                         model::loop a, b;
                         weft::executor* at = nullptr;
                         signal s;
                         a.gives_one_to(b);
                         task_run<void> r(looks_where_it_is(s, at), a);
                         tell_end(*r, over);
                         r->post_first_turn();
                         run.thread("sets", [&] { s.set(); });
                         run.thread("a", [&] {
                             a.run([&] { return over.load(std::memory_order_acquire); });
                         });
                         run.go();
                         require(at == &a, "it is where it was begun");
                     },
                     {.deviations = 3}),
                 bounded);
}

TEST(task_flow, is_stopped_although_it_migrates_concurrently) {
    expect_right(stop_beside_a_move({.deviations = 2}), bounded);
    expect_right(stop_beside_a_move({.random_schedules = 10'000}), bounded);
}

}  // namespace
