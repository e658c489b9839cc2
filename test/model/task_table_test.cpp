// weft/manager/task_table.cpp under the interleavings of threads that enter, close and walk the
// table; of threads that resume, cancel and stop a suspended task; and of a thread that looks up a
// task that ends. One shard, because to the system the model's threads are one. Bounded by
// deviations, because a thread that spins at a lock may always check once more.
#include "weft/manager/detail/task_table.hpp"

#include <gtest/gtest.h>

#include <array>

#include "model/actor.hpp"
#include "model/names.hpp"
#include "weft/base/errc.hpp"

namespace {

using namespace model::names;
using weft::managed_status;
using weft::manager_errc;
using weft::tick_never;
using weft::detail::live_count;
using weft::detail::managed_kind;
using weft::detail::managed_ref;
using weft::detail::managed_task;
using weft::detail::resume_offer;
using weft::detail::task_table;
using weft::detail::type_id_of;

constexpr model::options some = {.deviations = 3};

const weft::flow_kind kind_of_flow = {};
const managed_kind kind_of_task = {
    "task", nullptr, nullptr, nullptr, nullptr, [](managed_task&) noexcept {}, nullptr, nullptr};

// A task that is nothing but an entry. Nothing of its core is touched.
struct entry {
    model::actor on;
    weft::flow line{kind_of_flow};
    alignas(8) std::array<char, 8> no_core{};
    managed_task task{kind_of_task, line, reinterpret_cast<weft::detail::manager_core&>(no_core),
                      true};
    entry() { line.home = &on; }
};

TEST(task_table, refuses_or_shows_a_task_inserted_during_close) {
    expect_right(explore(
                     [](execution& run) {
                         live_count all;
                         task_table t(1);
                         entry e;
                         bool entered = false, found = false;
                         run.thread("spawns", [&] {
                             if (all.admit(~std::size_t{0}) != live_count::verdict::admitted)
                                 return;
                             const auto id = t.insert(e.task, tick_never, all);
                             entered = id.has_value();
                             require(entered || id.error() == weft::errc::closed, "it says why");
                             if (!entered) all.leave();
                         });
                         run.thread("closes", [&] {
                             all.close();
                             t.for_each([&](managed_task& m) { found = &m == &e.task; });
                         });
                         run.go();
                         require(entered == found, "it was refused, or is found");
                         require(all.is_empty() == !entered, "and is counted if it is there");
                         if (entered) static_cast<void>(t.remove(e.task, managed_status::done));
                     },
                     some),
                 bounded);
}

// Two resumes, a cancel and the stop of one suspended task: one ends the wait.
void ended_once(bool shielded) {
    expect_right(explore(
                     [=](execution& run) {
                         live_count all;
                         task_table t(1);
                         entry e;
                         const std::uint64_t id = t.insert(e.task, tick_never, all).value();
                         if (shielded) e.line.raise_shield();
                         weft::waiter w(e.line);
                         require(t.suspend(e.task, w, type_id_of<int>()) == nullptr, "it waits");
                         std::array<resume_offer, 2> offers{};
                         bool cancelled = false;
                         for (std::size_t i = 0; i < 2; ++i)
                             run.thread("resumes", [&, i] {
                                 offers[i] = t.offer(id, type_id_of<int>(), nullptr);
                             });
                         run.thread("stops", [&] {
                             t.close(id);
                             if (!shielded) cancelled = t.cancel(e.task, w);
                         });
                         run.go();
                         int ended = cancelled ? 1 : 0;
                         for (const resume_offer& o : offers) {
                             require(o.to == nullptr || o.to == &w, "it is this waiter");
                             ended += o.to != nullptr ? 1 : 0;
                         }
                         require(ended == 1, "one ends the wait");
                         if (shielded) e.line.lower_shield();
                         static_cast<void>(t.remove(e.task, managed_status::done));
                     },
                     some),
                 bounded);
}

TEST(task_table, has_one_winner_of_resume_cancel_and_stop) { ended_once(false); }
TEST(task_table, one_resume_ends_a_wait_shielded_from_stops) { ended_once(true); }

// What is found is kept by its reference, or it is not found; and its id is not its successor's.
TEST(task_table, finds_an_ending_task_or_none_but_never_another) {
    expect_right(explore(
                     [](execution& run) {
                         live_count all;
                         task_table t(1);
                         entry first, next;
                         const std::uint64_t id = t.insert(first.task, tick_never, all).value();
                         weft::atomic<std::uint64_t> other{0};
                         run.thread("goes", [&] {
                             static_cast<void>(t.remove(first.task, managed_status::done));
                             other.store(t.insert(next.task, tick_never, all).value(),
                                         std::memory_order_relaxed);
                         });
                         run.thread("looks", [&] {
                             const managed_ref r = t.find(id);
                             require(!r || r.get() == &first.task, "it, or none");
                             static_cast<void>(t.set_deadline(id, 5));
                         });
                         run.go();
                         require(other.load() != id, "an id of its own");
                         require(t.find(other.load()).get() == &next.task, "by which it is found");
                         static_cast<void>(t.remove(next.task, managed_status::done));
                         t.check();
                     },
                     some),
                 bounded);
}

}  // namespace
