// weft/manager/detail/managed_state.hpp under the interleavings of threads that start a task and
// end it, and of the task's own end. The walks are complete, except two, which are bounded by 5 and
// by 4 deviations.
#include "weft/manager/detail/managed_state.hpp"

#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include "model/names.hpp"
#include "weft/base/detail/spin_lock.hpp"

namespace {

using namespace model::names;
using weft::managed_status;
using weft::stop_reason;
using weft::detail::managed_state;
using owed = managed_state::owed;

constexpr model::options whole = {.deviations = 20};

// A launched task's first turn, and two threads that end the task: one of the three is first.
// Either the function is called or a cause is recorded, never both. A thread that sees the cause
// sees what was written before it.
TEST(managed_state, records_one_cause_and_starts_only_without_one) {
    expect_right(explore(
        [](execution& run) {
            managed_state s(true);
            model::var<int> told{0};
            std::array<owed, 2> got{};
            bool begun = false;
            run.thread("cancels", [&] {
                told.write(1);
                got[0] = s.decide(managed_status::cancelled, stop_reason::user);
            });
            run.thread("is late", [&] {
                got[1] = s.decide(managed_status::timed_out, stop_reason::deadline);
            });
            run.thread("begins", [&] {
                begun = s.begin();
                if (!begun && s.cause() == managed_status::cancelled)
                    require(told.read() == 1, "what was written before the cause");
            });
            run.go();
            require((got[0] == owed::nothing) != (got[1] == owed::nothing), "one is first");
            const owed first = got[0] == owed::nothing ? got[1] : got[0];
            require(first == (begun ? owed::ask : owed::wait), "and knows whether it has begun");
            require(
                s.reason() == (got[0] == owed::nothing ? stop_reason::deadline : stop_reason::user),
                "cause and reason are of one");
        },
        whole));
}

// Of a lazy one: launched, or dropped by its end.
TEST(managed_state, is_scheduled_once_or_dropped) {
    expect_right(explore(
        [](execution& run) {
            managed_state s(false);
            std::array<bool, 2> launched{};
            owed got{};
            run.thread("starts", [&] { launched[0] = s.start(); });
            run.thread("starts too", [&] { launched[1] = s.start(); });
            run.thread("kills", [&] { got = s.decide(managed_status::killed, stop_reason::user); });
            run.go();
            const int count = (launched[0] ? 1 : 0) + (launched[1] ? 1 : 0);
            require(count + (got == owed::drop ? 1 : 0) == 1, "one of the three");
        },
        whole));
}

// Kills against the end: one kill is sent at most, none to a task after the end of its function,
// and each kill has a reason.
TEST(managed_state, sends_at_most_one_kill_and_none_once_done) {
    expect_right(explore(
                     [](execution& run) {
                         managed_state s(true);
                         require(s.begin(), "it has begun");
                         weft::atomic<bool> over{false};
                         weft::atomic<int> sent{0};
                         const auto kill = [&] {
                             const bool was_over = over.load(std::memory_order_acquire);
                             static_cast<void>(s.decide(managed_status::killed, stop_reason::user));
                             if (!s.force()) return;
                             sent.fetch_add(1);
                             require(!was_over, "none to one that is over");
                             require(s.reason() != stop_reason::none, "it says why");
                         };
                         run.thread("kills", kill);
                         run.thread("kills too", kill);
                         run.thread("ends", [&] {
                             static_cast<void>(s.finish(managed_status::done, stop_reason::none));
                             over.store(true, std::memory_order_release);
                         });
                         run.go();
                         require(sent.load() <= 1, "once");
                         require(s.is_finished(), "it is over");
                     },
                     {.deviations = 5}),
                 model::bounded);
}

TEST(managed_state, gives_its_value_to_one_thread) {
    expect_right(explore(
        [](execution& run) {
            managed_state s(true);
            std::array<bool, 2> got{};
            for (std::size_t i = 0; i < 2; ++i) run.thread("takes", [&, i] { got[i] = s.take(); });
            run.go();
            require(got[0] != got[1], "one of the two");
        },
        whole));
}

// Hooks that are added concurrently with the end: either the end calls the hook, or the adding
// thread learns that the end will not call it. If none was added in time, the end need not check.
TEST(managed_state, calls_each_hook_at_the_end_or_in_the_late_adder) {
    expect_right(explore(
                     [](execution& run) {
                         managed_state s(true);
                         require(s.begin(), "it has begun");
                         weft::detail::spin_lock list;
                         model::var<int> hooks{0};
                         std::array<bool, 2> late{};
                         int called = 0;
                         for (std::size_t i = 0; i < 2; ++i)
                             run.thread("adds", [&, i] {
                                 const std::lock_guard held(list);
                                 late[i] = !s.expect_hook();
                                 if (!late[i]) hooks.write(hooks.read() + 1);
                             });
                         run.thread("ends", [&] {
                             static_cast<void>(s.finish(managed_status::done, stop_reason::none));
                             if (!s.has_hooks()) return;
                             {
                                 const std::lock_guard none_is_added(list);
                             }
                             called = hooks.read();  // without the lock, from here on
                         });
                         run.go();
                         require(called + (late[0] ? 1 : 0) + (late[1] ? 1 : 0) == 2, "each once");
                     },
                     {.deviations = 4}),
                 model::bounded);
}

// It is called by the thread that comes too late, and has no other order with the end.
TEST(managed_state, shows_the_result_to_a_late_hook_adder) {
    expect_right(explore(
        [](execution& run) {
            managed_state s(true);
            require(s.begin(), "it has begun");
            weft::detail::spin_lock list;
            model::var<int> result{0};
            run.thread("adds", [&] {
                bool late;
                {
                    const std::lock_guard held(list);
                    late = !s.expect_hook();
                }
                if (late) require(result.read() == 1, "what it did is seen");
            });
            run.thread("ends", [&] {
                result.write(1);
                static_cast<void>(s.finish(managed_status::done, stop_reason::none));
            });
            run.go();
        },
        {.deviations = 20}));
}

}  // namespace
