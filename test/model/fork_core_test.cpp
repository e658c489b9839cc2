// weft/parallel/detail/fork_core.hpp under the interleavings of a task that forks two children, of
// a thief that may take the second child from the worker's deque and run it on the thief's own
// loop, and of a stop. Bounded by deviations, because a spinning thread may always check once more;
// with more deviations, executions are chosen at random.
#include "weft/parallel/detail/fork_core.hpp"

#include <gtest/gtest.h>

#include "model/loop.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"
#include "model/signal.hpp"
#include "weft/parallel/fork_join.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::fork_deque*, weft_tls_fork_place);

namespace {

using namespace model::names;
using model::expect_freed;
using model::parcel;
using model::signal;
using weft::operator co_await;
using weft::task;
using weft::detail::task_run;

// Its pool's other workers are all awake.
struct place final : weft::detail::fork_deque {
    using fork_deque::fork_deque;
    void wake(unsigned) noexcept override { model::fail("nobody is asleep"); }
};

struct contents {
    model::var<int> first, second, of_second;
    bool seen = false;
    bool failed = false;
};

task<parcel> makes(model::var<int>& content) { co_return parcel(content); }
task<parcel> waits(model::var<int>& content, signal& s) {
    const parcel of_frame(content);
    co_await signal::wait(s);
    co_return parcel(content);
}
task<> fails(bool really) {
    if (really) throw 1;
    co_return;
}

task<> joins(contents& c) {
    const auto [x, y] = co_await weft::fork_join(makes(c.first), makes(c.second));
    x.look(), y.look();
    c.seen = true;
}
// The second child ends when it is stopped, and not before.
task<> joins_for_ever(contents& c, signal& never) {
    co_await weft::fork_join(makes(c.first), waits(c.of_second, never));
    c.seen = true;
}
task<> fails_one(contents& c, signal& never) {
    try {
        co_await weft::fork_join(fails(true), waits(c.of_second, never));
        c.seen = true;
    } catch (int) {
        c.failed = true;
    }
}

enum class ending { values, failure, stop };

model::report fork(ending e, const model::options& how) {
    return explore(
        [=](execution& run) {
            weft::atomic<bool> over{false};
            model::loop a, b;
            weft::detail::idle_set all(2);
            place forks(a, all);
            contents c;
            signal never;
            task_run<void> r(e == ending::values ? joins(c)
                             : e == ending::stop ? joins_for_ever(c, never)
                                                 : fails_one(c, never),
                             a);
            r->on_end_of = &over;
            r->on_end = [](void* at) noexcept {
                static_cast<weft::atomic<bool>*>(at)->store(true, std::memory_order_release);
            };
            r->post_first_turn();
            // What the parent wrote before it waited is seen by what wakes it, as the waiter is.
            if (e == ending::values)
                a.on_post = [&] { require(c.first.read() != 0, "the first child has run"); };
            const auto is_over = [&] { return over.load(std::memory_order_acquire); };
            run.thread("forks", [&] {
                weft::detail::this_thread_forks() = &forks;
                a.run(is_over);
            });
            run.thread("steals", [&] {
                weft::detail::this_thread_runs() = {nullptr, &b};
                const weft::detail::steal_mark mark = forks.mark();
                weft::detail::asymmetric_fence::heavy();
                const weft::ready_turn t = forks.steal(mark);
                if (t.handle) weft::detail::run_turn(b, t.handle, t.of);
                b.run(is_over);
            });
            if (e == ending::stop) {
                r->references.fetch_add(1);
                run.thread("stops", [&] {
                    require(r->request_stop(weft::stop_reason::user), "it is the first");
                    r->release();
                });
            }
            run.go();
            require(c.seen == (e == ending::values), "the parent goes on with the values");
            require(c.failed == (e == ending::failure), "or with the failure");
            require((r->member.stopped_by != weft::stop_reason::none) == (e == ending::stop),
                    "or it is stopped");
            r = {};
            a.end(), b.end();
            expect_freed(c.first), expect_freed(c.second), expect_freed(c.of_second);
            require(a.living() == 0 && b.living() == 0, "no child is left");
        },
        how);
}

void fork_each(ending e, unsigned deviations) {
    expect_right(fork(e, {.deviations = deviations}), bounded);
    expect_right(fork(e, {.random_schedules = 10'000}), bounded);
}

TEST(fork_core, resumes_when_local_and_stolen_children_are_done) { fork_each(ending::values, 3); }
TEST(fork_core, stops_the_other_children_when_one_fails) { fork_each(ending::failure, 3); }
TEST(fork_core, forwards_a_stop_to_a_stolen_child) { fork_each(ending::stop, 2); }

}  // namespace
