// weft/fiber/fiber.cpp under the interleavings of a fiber's end with threads that join the fiber,
// check whether it is done, request its stop or drop it, after which its executor may end. The
// function runs in one turn, because the model switches no stacks: flow_test and waiter_state_test
// cover how a fiber waits. Bounded by deviations, because a thread that finds a lock taken spins;
// of three threads, more executions are chosen at random.
#include "weft/fiber/detail/fiber_core.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "model/actor.hpp"
#include "model/agent.hpp"
#include "model/loop.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/fiber/detail/fiber_body.hpp"
#include "weft/fiber/nursery.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::parcel;
using weft::fiber;
using weft::stop_reason;

// Counts the exceptions that leave a fiber without a join.
model::var<int>* told = nullptr;
void tell(std::exception_ptr, weft::agent_info) { told->write(told->read() + 1); }

enum class use { joins, looks, detaches, drops };

// Its error is a value, which is destroyed with the last owner.
struct error {
    std::shared_ptr<parcel> held;
};

report end_beside(use how, bool fails, unsigned deviations) {
    return explore(
        [=](execution& run) {
            model::loop on;
            model::agent has;
            model::var<int> result, content, unhandled;
            bool ran = false;
            told = &unhandled;
            weft::on_unhandled(tell);
            fiber f(
                [&] {
                    result.write(1);
                    ran = true;
                    if (fails) throw error{std::make_shared<parcel>(content)};
                },
                {.on = on});
            run.thread("runs", [&] { on.run([&] { return ran; }); });
            run.thread("has", [&] {
                has.run([&] {
                    if (how == use::detaches) return f.detach();
                    if (how == use::drops) f = fiber();
                    if (how == use::looks && !f.done()) return;
                    bool thrown = false;
                    try {
                        if (how == use::joins) f.join();
                    } catch (const error& e) {
                        thrown = true;
                        e.held->look();
                    }
                    require(how != use::joins || thrown == fails, "a join throws its error");
                    require(result.read() == 1, "what it did is seen");
                });
            });
            run.go();
            has.check();
            on.close();
            f = fiber();
            require((unhandled.read() == 1) == (fails && how != use::joins),
                    "an error is told once, to the one that joins or to the handler");
            expect_freed(content);
        },
        {.deviations = deviations});
}

TEST(fiber_core, delivers_its_outcome_to_the_joiner) {
    for (const bool fails : {false, true}) expect_right(end_beside(use::joins, fails, 4), bounded);
}
TEST(fiber_core, shows_its_writes_once_done) { expect_right(end_beside(use::looks, false, 10)); }
TEST(fiber_core, reports_its_error_once_when_not_joined) {
    for (const use how : {use::detaches, use::drops})
        expect_right(end_beside(how, true, 3), bounded);
}

// A handler that another thread sets concurrently is ordered after that thread's earlier writes.
TEST(fiber_core, error_handler_sees_writes_made_before_it_was_set) {
    expect_right(explore(
        [](execution& run) {
            model::loop on;
            model::var<int> known, unhandled;
            bool ran = false;
            told = &unhandled;
            static model::var<int>* knows;
            knows = &known;
            weft::on_unhandled(tell);
            fiber([&] { ran = true, throw 1; }, {.on = on}).detach();
            run.thread("runs", [&] { on.run([&] { return ran; }); });
            run.thread("sets", [&] {
                known.write(1);
                weft::on_unhandled([](std::exception_ptr e, weft::agent_info who) {
                    require(knows->read() == 1, "it knows that");
                    tell(std::move(e), who);
                });
            });
            run.go();
            require(unhandled.read() == 1, "it is told once");
        },
        {.deviations = 10}));
}

TEST(fiber_core, shows_its_writes_once_done_as_a_child) {
    expect_right(explore(
                     [](execution& run) {
                         model::loop on;
                         model::agent has;
                         model::var<int> result;
                         bool ran = false;
                         run.thread("runs", [&] { on.run([&] { return ran; }); });
                         run.thread("has", [&] {
                             has.run([&] {
                                 weft::nursery n;
                                 const auto child = n.spawn(
                                     [&] {
                                         result.write(1);
                                         ran = true;
                                     },
                                     weft::fiber_options{.on = on});
                                 if (child.done()) require(result.read() == 1, "that is seen");
                                 n.join();
                                 require(child.done(), "a join lasts until then");
                             });
                         });
                         run.go();
                         has.check();
                     },
                     {.deviations = 3}),
                 bounded);
}

// -- its references -------------------------------------------------------------------------------

// Its block is read by each that has a reference, and written by the end of the last.
class block final : public weft::detail::watched_fiber {
public:
    template <class F>
    block(model::var<int>& life, model::loop& on, F function)
        : watched_fiber(look_at, this, end), life_(life) {
        set_body(weft::detail::fiber_body<F>(std::move(function)));
        target = &on;
        home = &on;
        kept = true;  // its end is notified, and it is joined as well
    }
    void look() const { static_cast<void>(life_.read()); }

private:
    static void look_at(void* self) noexcept { static_cast<block*>(self)->look(); }
    static void end(watched_fiber& f) noexcept {
        auto* const self = static_cast<block*>(&f);
        self->life_.write(1);
        delete self;
    }
    model::var<int>& life_;
};

struct party_to_it {
    bool joins = false;    // the handle joins; else it detaches
    bool stops = false;    // another thread requests a stop before it releases its reference
    bool as_flow = false;  // as a nursery does, which does not ask whether it has ended
    model::fate fate = model::fate::none;
};

// Its loop ends as soon as it is known to be done.
report release_beside(party_to_it p, const model::options& how) {
    return explore(
        [=](execution& run) {
            model::loop on;
            model::actor waits;
            model::var<int> life;
            bool ran = false;
            auto* const f = new block(life, on, [&] {
                ran = true;
                weft::this_fiber::throw_if_stopped();
            });
            if (p.stops) f->keep();
            f->begin(false);
            run.thread("runs", [&] { on.run([&] { return ran; }); });
            run.thread("has", [&] {
                if (p.joins) {
                    weft::detail::fiber_end_operation end(*f);
                    if (!end.ready())
                        static_cast<void>(
                            waits.wait([&](weft::waiter& w) { return end.start(w); }, p.fate));
                    if (end.ready()) on.close();
                }
                f->look();
                f->detach();
            });
            if (p.stops)
                run.thread("stops", [&] {
                    const bool asked =
                        p.as_flow ? static_cast<weft::flow&>(*f).request_stop(stop_reason::user)
                                  : f->request_stop(stop_reason::user);
                    if (f->has_ended())
                        require(asked || f->stopped_by == stop_reason::none,
                                "a request that ended it is told so");
                    f->look();
                    f->release();
                });
            run.go();
            waits.check();
            on.end();
            require(on.living() == 0, "it is enrolled no longer than it lives");
            require(life.read() == 1, "its block goes with the last reference");
        },
        how);
}

TEST(fiber_core, is_destroyed_with_the_last_reference) {
    expect_right(release_beside({}, {.deviations = 4}), bounded);
    expect_right(release_beside({.stops = true}, {.deviations = 2}), bounded);
    expect_right(release_beside({.stops = true}, {.random_schedules = 10'000}), bounded);
}
TEST(fiber_core, does_not_need_its_loop_once_done) {
    expect_right(release_beside({.joins = true}, {.deviations = 4}), bounded);
    for (const bool as_flow : {false, true}) {
        const party_to_it both{.joins = true, .stops = true, .as_flow = as_flow};
        expect_right(release_beside(both, {.deviations = 2}), bounded);
        expect_right(release_beside(both, {.random_schedules = 10'000}), bounded);
    }
}
TEST(fiber_core, does_not_touch_a_join_that_has_ended) {
    for (const model::fate f : {model::fate::deadline, model::fate::stop, model::fate::end})
        expect_right(release_beside({.joins = true, .fate = f}, {.deviations = 3}), bounded);
}

// Its run has no reference: a third takes one of its own where it finds the fiber, in a list that
// this one leaves before its end, and has a message on its way when the fiber object is gone.
report find_beside(use how, const model::options& options) {
    return explore(
        [=](execution& run) {
            model::loop on;
            model::agent has;
            model::var<int> content;
            weft::detail::spin_lock list;
            weft::detail::fiber_core* listed = nullptr;
            bool ran = false;
            fiber f(
                [&, held = std::make_shared<parcel>(content)] {
                    const auto list_it = [&](weft::detail::fiber_core* self) {
                        const std::lock_guard locked(list);
                        listed = self;
                    };
                    list_it(weft::detail::fiber_core::current());
                    list_it(nullptr);
                    ran = true;
                    held->look();
                },
                {.on = on});
            run.thread("runs", [&] { on.run([&] { return ran; }); });
            run.thread("has", [&] {
                has.run([&] {
                    if (how == use::detaches) return f.detach();
                    if (how == use::drops) return static_cast<void>(f = fiber());
                    f.join();
                });
            });
            run.thread("finds", [&] {
                weft::detail::fiber_core* found = nullptr;
                {
                    const std::lock_guard locked(list);
                    found = listed;
                    if (found != nullptr) found->keep();
                }
                if (found == nullptr) return;
                static_cast<weft::flow&>(*found).request_stop(stop_reason::user);
                found->release();
            });
            run.go();
            has.check();
            on.end();
            require(on.living() == 0, "it is enrolled no longer than it lives");
            expect_freed(content);
        },
        options);
}

TEST(fiber_core, outlives_its_run_for_a_thread_that_found_it_running) {
    for (const use how : {use::joins, use::detaches, use::drops}) {
        expect_right(find_beside(how, {.deviations = 2}), bounded);
        expect_right(find_beside(how, {.random_schedules = 10'000}), bounded);
    }
}

}  // namespace
