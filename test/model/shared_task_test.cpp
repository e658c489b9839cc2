// weft/task/shared_task.hpp under the interleavings of two tasks, each on its own loop, that await
// one shared task and drop it, and of a stop. The shared task is started once, by the first
// awaiter, on that awaiter's loop. Bounded by deviations; with more of them, executions are chosen
// at random.
#include "weft/task/shared_task.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "model/loop.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"
#include "weft/wait/stopped.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::parcel;
using weft::shared_task;
using weft::task;
using weft::detail::task_run;

shared_task<parcel> makes(model::var<int>& content, int& begins) {
    ++begins;
    co_return parcel(content);
}

task<> looks(shared_task<parcel> s, int& seen) {
    (co_await s).look();
    ++seen;
}

model::report await_by_two(bool stops, const model::options& how) {
    return explore(
        [=](execution& run) {
            weft::atomic<int> ended{0};
            std::array<model::loop, 2> on;
            std::array<int, 2> seen{};
            std::array<task_run<void>, 2> awaits;
            model::var<int> content;
            int begins = 0;
            std::optional<shared_task<parcel>> s(makes(content, begins));
            for (std::size_t i = 0; i < 2; ++i) {
                awaits[i] = task_run<void>(looks(*s, seen[i]), on[i]);
                awaits[i]->on_end_of = &ended;
                awaits[i]->on_end = [](void* at) noexcept {
                    static_cast<weft::atomic<int>*>(at)->fetch_add(1, std::memory_order_release);
                };
                awaits[i]->post_first_turn();
                run.thread("awaits", [&, i] {
                    on[i].run([&] { return ended.load(std::memory_order_acquire) == 2; });
                });
            }
            if (stops)
                run.thread("stops", [&] {
                    s->request_stop();
                    s.reset();
                });
            run.go();
            require(begins <= 1, "it is begun once");
            for (std::size_t i = 0; i < 2; ++i) {
                const bool stopped = awaits[i]->member.stopped_by != weft::stop_reason::none;
                require(seen[i] + stopped == 1, "each is told what came of it");
                require(stops || seen[i] == 1, "which is the value");
                on[i].end();
                require(on[i].living() == 0, "none is enrolled any more");
                awaits[i] = {};
            }
            s.reset();
            expect_freed(content);
        },
        how);
}

TEST(shared_task, starts_once_and_resumes_all_awaiters) {
    expect_right(await_by_two(false, {.deviations = 3}), bounded);
}
TEST(shared_task, resumes_all_awaiters_when_stopped) {
    expect_right(await_by_two(true, {.deviations = 2}), bounded);
    expect_right(await_by_two(true, {.random_schedules = 10'000}), bounded);
}

}  // namespace
