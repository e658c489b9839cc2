// Every wait of this layer, and those of the wait layer, ended early: by a stop, by the deadline of
// a scope, by the end of its loop; in a fiber, in a task, in a task that a fiber waits for, on a
// thread. The waiter comes back within a millisecond of the loop's time, is queued nowhere, and the
// awaited object is as if the waiter had never come.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/barrier.hpp"
#include "weft/sync/broadcast.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/condition_variable_any.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/once.hpp"
#include "weft/sync/oneshot.hpp"
#include "weft/sync/recursive_mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/sync/unbounded_channel.hpp"
#include "weft/sync/wait_group.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/from_callback.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/sleep.hpp"
#include "weft/wait/timeout_scope.hpp"

using namespace std::chrono_literals;

namespace {

// Fresh for each test, held or empty, so that every wait waits.
struct things {
    weft::manual_reset_event manual;
    weft::auto_reset_event automatic;
    weft::counting_semaphore<> semaphore{0};
    weft::latch latch{1};
    weft::barrier<> barrier{2};
    weft::wait_group group{1};
    weft::mutex mutex, free_mutex;
    weft::recursive_mutex recursive;
    weft::shared_mutex shared, free_shared;
    weft::condition_variable condition;
    weft::condition_variable_any condition_any;
    weft::once_flag once;
    weft::channel<int> empty, full{1}, other;
    weft::unbounded_channel<int> unbounded;
    weft::oneshot<int> answer;
    weft::broadcast<int> broadcast{2};
    weft::broadcast<int>::receiver receiver{broadcast};
    std::optional<weft::completion<int>> kept;

    things() {
        EXPECT_TRUE(mutex.try_lock());
        EXPECT_TRUE(recursive.try_lock());
        EXPECT_TRUE(shared.try_lock());
        EXPECT_TRUE(weft::await(once.async_acquire()));
        EXPECT_TRUE(full.try_send(1));
    }
    ~things() {
        mutex.unlock();
        recursive.unlock();
        shared.unlock();
        once.release(false);
    }
};

struct wait {
    const char* name;
    // Whether the return value reports that the wait was ended early; otherwise the wait throws. By
    // a call that blocks, and by a coroutine; null where there is none.
    bool (*blocks)(things&);
    weft::task<bool> (*suspends)(things&);
    // Afterwards, with the object made available: whether it is intact.
    bool (*intact)(things&);
};

bool cancelled(std::error_code e) { return e == std::errc::operation_canceled; }
bool is_would_wait(std::error_code e) { return e == std::errc::resource_unavailable_try_again; }
template <class T>
bool gets_back(T& m) {  // by the owner
    m.unlock();
    return m.try_lock();
}
bool is_free(weft::mutex& m) { return m.try_lock() && (m.unlock(), true); }
bool is_free(weft::shared_mutex& m) { return m.try_lock() && (m.unlock(), true); }
bool channels_are_free(things& t) {
    return is_would_wait(t.empty.try_send(1).error()) && *t.full.try_recv() == 1 &&
           is_would_wait(t.full.try_recv().error()) && is_would_wait(t.other.try_recv().error());
}

// Awaits the result of Op, which throws, or reports that it was cancelled.
template <auto Op>
weft::task<bool> throws(things& t) {
    static_cast<void>(co_await Op(t));
    co_return false;
}
template <auto Op>
weft::task<bool> throws_void(things& t) {
    co_await Op(t);
    co_return false;
}
template <auto Op>
weft::task<bool> says(things& t) {
    const auto r = co_await Op(t);
    co_return cancelled(r.error());
}
weft::task<bool> wait_for_condition(things& t) {
    co_await t.free_mutex.async_lock();
    std::unique_lock lock(t.free_mutex, std::adopt_lock);
    co_await t.condition.async_wait(lock);
    co_return false;
}
weft::task<bool> wait_for_condition_until(things& t) {
    co_await t.free_mutex.async_lock();
    std::unique_lock lock(t.free_mutex, std::adopt_lock);
    co_await t.condition.async_wait(lock, weft::never);
    co_return false;
}

weft::task<bool> wait_for_any_condition(things& t) {
    std::shared_lock lock = co_await t.free_shared.async_scoped_lock_shared();
    co_await t.condition_any.async_wait(lock);
    co_return false;
}
weft::task<bool> wait_for_any_condition_until(things& t) {
    std::unique_lock lock = co_await t.free_shared.async_scoped_lock();
    co_await t.condition_any.async_wait(lock, weft::never);
    co_return false;
}

const auto forever = weft::never;
const auto soon_enough = [] { return weft::after(weft::now(), 1000h); };
const wait every_wait[] = {
    {"manual_reset_event_wait", [](things& t) { return t.manual.wait(), false; },
     throws_void<[](things& t) { return t.manual.async_wait(); }>,
     [](things& t) { return !t.manual.is_set(); }},
    {"manual_reset_event_wait_with_a_limit", [](things& t) { return t.manual.wait(forever); },
     throws<[](things& t) { return t.manual.async_wait(forever); }>,
     [](things& t) { return !t.manual.is_set(); }},
    {"auto_reset_event_wait", [](things& t) { return t.automatic.wait(), false; },
     throws_void<[](things& t) { return t.automatic.async_wait(); }>,
     [](things& t) { return t.automatic.set(), t.automatic.try_wait(); }},
    {"auto_reset_event_wait_with_a_limit", [](things& t) { return t.automatic.wait(forever); },
     throws<[](things& t) { return t.automatic.async_wait(forever); }>,
     [](things& t) { return t.automatic.set(), t.automatic.try_wait(); }},
    {"semaphore_acquire", [](things& t) { return t.semaphore.acquire(), false; },
     throws_void<[](things& t) { return t.semaphore.async_acquire(); }>,
     [](things& t) { return t.semaphore.release(), t.semaphore.try_acquire(); }},
    {"semaphore_try_acquire_until",
     [](things& t) { return t.semaphore.try_acquire_until(forever); },
     throws<[](things& t) { return t.semaphore.async_acquire(forever); }>,
     [](things& t) { return t.semaphore.release(), t.semaphore.try_acquire(); }},
    {"latch_wait", [](things& t) { return t.latch.wait(), false; },
     throws_void<[](things& t) { return t.latch.async_wait(); }>,
     [](things& t) { return !t.latch.try_wait(); }},
    {"latch_wait_with_a_limit", [](things& t) { return t.latch.wait(forever); },
     throws<[](things& t) { return t.latch.async_wait(forever); }>,
     [](things& t) { return !t.latch.try_wait(); }},
    {"wait_group_wait", [](things& t) { return t.group.wait(), false; },
     throws_void<[](things& t) { return t.group.async_wait(); }>,
     [](things& t) { return t.group.count() == 1; }},
    {"wait_group_wait_with_a_limit", [](things& t) { return t.group.wait(forever); },
     throws<[](things& t) { return t.group.async_wait(forever); }>,
     [](things& t) { return t.group.count() == 1; }},
    {"barrier_arrive_and_wait", [](things& t) { return t.barrier.arrive_and_wait(), false; },
     throws_void<[](things& t) { return t.barrier.async_arrive_and_wait(); }>,
     [](things& t) { return t.barrier.arrive_and_wait(), true; }},
    {"once_enter", [](things& t) { return weft::call_once(t.once, [] {}), false; },
     throws<[](things& t) { return t.once.async_acquire(); }>,
     [](things& t) { return !t.once.is_done(); }},
    {"mutex_lock", [](things& t) { return t.mutex.lock(), false; },
     throws_void<[](things& t) { return t.mutex.async_lock(); }>,
     [](things& t) { return gets_back(t.mutex); }},
    {"mutex_try_lock_until", [](things& t) { return t.mutex.try_lock_until(forever); },
     throws<[](things& t) { return t.mutex.async_lock(forever); }>,
     [](things& t) { return gets_back(t.mutex); }},
    {"recursive_mutex_lock", [](things& t) { return t.recursive.lock(), false; },
     throws_void<[](things& t) { return t.recursive.async_lock(); }>,
     [](things& t) { return gets_back(t.recursive); }},
    {"recursive_mutex_try_lock_until",
     [](things& t) { return t.recursive.try_lock_until(forever); },
     throws<[](things& t) { return t.recursive.async_lock(forever); }>,
     [](things& t) { return gets_back(t.recursive); }},
    {"shared_mutex_lock", [](things& t) { return t.shared.lock(), false; },
     throws_void<[](things& t) { return t.shared.async_lock(); }>,
     [](things& t) { return gets_back(t.shared); }},
    {"shared_mutex_lock_shared", [](things& t) { return t.shared.lock_shared(), false; },
     throws_void<[](things& t) { return t.shared.async_lock_shared(); }>,
     [](things& t) { return gets_back(t.shared); }},
    {"shared_mutex_try_lock_until", [](things& t) { return t.shared.try_lock_until(forever); },
     throws<[](things& t) { return t.shared.async_lock(forever); }>,
     [](things& t) { return gets_back(t.shared); }},
    {"shared_mutex_try_lock_shared_until",
     [](things& t) { return t.shared.try_lock_shared_until(forever); },
     throws<[](things& t) { return t.shared.async_lock_shared(forever); }>,
     [](things& t) { return gets_back(t.shared); }},
    {"condition_variable_wait",
     [](things& t) {
         std::unique_lock lock(t.free_mutex);
         t.condition.wait(lock);
         return false;
     },
     wait_for_condition, [](things& t) { return is_free(t.free_mutex); }},
    {"condition_variable_wait_until",
     [](things& t) {
         std::unique_lock lock(t.free_mutex);
         t.condition.wait_until(lock, forever);
         return false;
     },
     wait_for_condition_until, [](things& t) { return is_free(t.free_mutex); }},
    {"condition_variable_any_wait",
     [](things& t) {
         std::shared_lock lock(t.free_shared);
         t.condition_any.wait(lock);
         return false;
     },
     wait_for_any_condition, [](things& t) { return is_free(t.free_shared); }},
    {"condition_variable_any_wait_until",
     [](things& t) {
         std::unique_lock lock(t.free_shared);
         t.condition_any.wait_until(lock, forever);
         return false;
     },
     wait_for_any_condition_until, [](things& t) { return is_free(t.free_shared); }},
    {"channel_recv", [](things& t) { return cancelled(t.empty.recv().error()); },
     says<[](things& t) { return t.empty.async_recv(); }>, channels_are_free},
    {"channel_recv_with_a_limit", [](things& t) { return cancelled(t.empty.recv(1000h).error()); },
     says<[](things& t) { return t.empty.async_recv(soon_enough()); }>, channels_are_free},
    {"channel_send", [](things& t) { return cancelled(t.full.send(2).error()); },
     says<[](things& t) { return t.full.async_send(2); }>, channels_are_free},
    {"channel_send_with_a_limit",
     [](things& t) { return cancelled(t.full.send(2, 1000h).error()); },
     says<[](things& t) { return t.full.async_send(2, soon_enough()); }>, channels_are_free},
    {"channel_send_from_hand_to_hand", [](things& t) { return cancelled(t.other.send(2).error()); },
     says<[](things& t) { return t.other.async_send(2); }>, channels_are_free},
    {"channel_iteration",
     [](things& t) {
         for (int i : t.empty) ADD_FAILURE() << i;
         return false;
     },
     nullptr, channels_are_free},
    {"unbounded_channel_recv", [](things& t) { return cancelled(t.unbounded.recv().error()); },
     says<[](things& t) { return t.unbounded.async_recv(); }>,
     [](things& t) { return t.unbounded.send(1) && t.unbounded.size() == 1; }},
    {"unbounded_channel_recv_with_a_limit",
     [](things& t) { return cancelled(t.unbounded.recv(1000h).error()); },
     says<[](things& t) { return t.unbounded.async_recv(soon_enough()); }>,
     [](things& t) { return t.unbounded.send(1) && t.unbounded.size() == 1; }},
    {"oneshot_recv", [](things& t) { return cancelled(t.answer.recv().error()); },
     says<[](things& t) { return t.answer.async_recv(); }>,
     [](things& t) { return t.answer.send(3) && *t.answer.try_recv() == 3; }},
    {"oneshot_recv_with_a_limit", [](things& t) { return cancelled(t.answer.recv(1000h).error()); },
     says<[](things& t) { return t.answer.async_recv(soon_enough()); }>,
     [](things& t) { return t.answer.send(3) && *t.answer.try_recv() == 3; }},
    {"broadcast_recv", [](things& t) { return cancelled(t.receiver.recv().error()); },
     says<[](things& t) { return t.receiver.async_recv(); }>,
     [](things& t) { return t.broadcast.send(3) && *t.receiver.try_recv() == 3; }},
    {"broadcast_recv_with_a_limit",
     [](things& t) { return cancelled(t.receiver.recv(1000h).error()); },
     says<[](things& t) { return t.receiver.async_recv(soon_enough()); }>,
     [](things& t) { return t.broadcast.send(3) && *t.receiver.try_recv() == 3; }},
    {"select",
     [](things& t) {
         weft::select(weft::on_recv(t.empty, [](int) {}), weft::on_send(t.full, 2),
                      weft::on_closed(t.other, [] {}), weft::on_recv(t.other, [](int) {}));
         return false;
     },
     throws<[](things& t) {
         return weft::async_select(weft::on_recv(t.empty, [](int) {}), weft::on_send(t.full, 2),
                                   weft::on_closed(t.other, [] {}),
                                   weft::on_recv(t.other, [](int) {}));
     }>,
     channels_are_free},
    {"select_with_on_stop",
     [](things& t) {
         return weft::select(weft::on_recv(t.empty, [](int) {}), weft::on_send(t.full, 2),
                             weft::on_timeout(1000h, [] {}), weft::on_stop([] {})) == 3;
     },
     nullptr, channels_are_free},
    {"sleep", [](things&) { return weft::await(weft::sleep_for(1000h)), false; },
     throws_void<[](things&) { return weft::sleep_for(1000h); }>, [](things&) { return true; }},
    {"from_callback",
     [](things& t) {
         return cancelled(weft::await_callback<int>([&](auto done) { t.kept = done; }).error());
     },
     says<[](things& t) { return weft::from_callback<int>([&t](auto done) { t.kept = done; }); }>,
     [](things& t) { return !t.kept || !(*t.kept)(3); }},
};

// How a wait ended.
struct ending {
    bool said = false;
    weft::stop_reason why = weft::stop_reason::none;
    bool expired = false;
    weft::time_point begun{}, woken{};

    bool over() const { return woken != weft::time_point{}; }
    bool one_of_two(weft::stop_reason reason) const { return said != (why == reason); }
};
constexpr weft::duration no_limit = weft::duration::max();

// Waits, within a scope.
template <class F>
void block_for(F f, weft::duration limit, ending& e) {
    e.begun = weft::now();
    const weft::timeout_scope scope(limit);
    try {
        e.said = f();
    } catch (const weft::stopped& s) {
        e.why = s.reason;
    }
    e.woken = weft::now();
    e.expired = scope.has_expired();
}
weft::task<> suspend_for(weft::task<bool> t, weft::duration limit, ending& e) {
    e.begun = weft::now();
    const weft::timeout_scope scope(limit);
    try {
        e.said = co_await t;
    } catch (const weft::stopped& s) {
        e.why = s.reason;
    }
    e.woken = weft::now();
    e.expired = scope.has_expired();
}

enum class kind { fiber, task, task_in_a_fiber };

// A waiter, on a loop with a clock that jumps.
class who_waits {
public:
    who_waits(kind k, weft::testing::virtual_loop& l, const wait& w, things& t, ending& e,
              weft::duration limit = no_limit) {
        if (k == kind::task) {
            task_.emplace(suspend_for(w.suspends(t), limit, e), l.loop());
            (*task_)->post_first_turn();
            return;
        }
        fiber_.emplace(
            [&, k, limit] {
                if (k == kind::fiber)
                    block_for([&] { return w.blocks(t); }, limit, e);
                else
                    block_for([&] { return weft::await(w.suspends(t)); }, limit, e);
            },
            weft::fiber_options{.on = l});
    }
    bool request_stop(weft::stop_reason r) {
        return fiber_ ? fiber_->request_stop(r) : (*task_)->request_stop(r);
    }
    void join() {
        if (fiber_)
            fiber_->join();
        else
            task_->take();
    }

private:
    std::optional<weft::fiber> fiber_;
    std::optional<weft::detail::task_run<void>> task_;
};

struct row {
    const wait* what;
    kind by;
};
std::vector<row> every_wait_by_everybody() {
    std::vector<row> all;
    for (const wait& w : every_wait) {
        all.push_back({&w, kind::fiber});
        if (w.suspends == nullptr) continue;
        all.push_back({&w, kind::task});
        all.push_back({&w, kind::task_in_a_fiber});
    }
    return all;
}
std::string name_of_row(const ::testing::TestParamInfo<row>& i) {
    static constexpr const char* kinds[] = {"_in_a_fiber", "_in_a_task", "_in_a_task_of_a_fiber"};
    return std::string(i.param.what->name) + kinds[static_cast<int>(i.param.by)];
}

class every_wait_of_sync : public ::testing::TestWithParam<row> {
protected:
    const wait& what = *GetParam().what;
    weft::testing::virtual_loop l;
    things t;
    ending e;
};

TEST_P(every_wait_of_sync, is_ended_by_a_stop) {
    who_waits waits(GetParam().by, l, what, t, e);
    weft::time_point stopped{};
    weft::fiber ends(
        [&] {
            weft::this_fiber::sleep_for(10ms);
            EXPECT_FALSE(e.over()) << "it did not wait";
            stopped = weft::now();
            EXPECT_TRUE(waits.request_stop(weft::stop_reason::shutdown));
        },
        {.on = l});
    l.run();
    waits.join();
    ends.join();
    EXPECT_TRUE(e.one_of_two(weft::stop_reason::shutdown));
    EXPECT_LE(e.woken - stopped, 1ms);
    EXPECT_TRUE(what.intact(t));
}

// The deadline is of a scope around the wait, not the wait's own; the flow is not stopped, and
// continues.
TEST_P(every_wait_of_sync, is_ended_by_the_deadline_of_a_scope) {
    who_waits waits(GetParam().by, l, what, t, e, 10ms);
    l.run();
    waits.join();
    EXPECT_TRUE(e.one_of_two(weft::stop_reason::deadline));
    EXPECT_TRUE(e.expired);
    EXPECT_GE(e.woken - e.begun, 10ms);
    EXPECT_LE(e.woken - e.begun, 11ms);
    EXPECT_TRUE(what.intact(t));
}

TEST_P(every_wait_of_sync, is_not_begun_after_the_deadline_of_a_scope) {
    who_waits waits(GetParam().by, l, what, t, e, 0ms);
    l.run();
    waits.join();
    EXPECT_TRUE(e.one_of_two(weft::stop_reason::deadline));
    EXPECT_EQ(l.now(), weft::time_point{});
    EXPECT_TRUE(what.intact(t));
}

TEST_P(every_wait_of_sync, is_not_begun_after_a_stop) {
    who_waits waits(GetParam().by, l, what, t, e);
    EXPECT_TRUE(waits.request_stop(weft::stop_reason::user));
    l.run();
    waits.join();
    EXPECT_TRUE(e.one_of_two(weft::stop_reason::user));
    EXPECT_EQ(l.now(), weft::time_point{});
}

INSTANTIATE_TEST_SUITE_P(sync, every_wait_of_sync, ::testing::ValuesIn(every_wait_by_everybody()),
                         name_of_row);

// The same on a stack of one's own.
class every_blocking_wait_of_sync : public ::testing::TestWithParam<wait> {};

// The loop ends while the fiber waits under a shield: the fiber is unwound, and is queued nowhere.
TEST_P(every_blocking_wait_of_sync, is_cancelled_when_its_stack_is_unwound) {
    things t;
    bool returned = false;
    {
        weft::loop l;
        weft::fiber f(
            [&] {
                const weft::shield s;
                GetParam().blocks(t);
                returned = true;
            },
            {.on = l});
        f.detach();
        l.run_until_idle();
    }
    EXPECT_FALSE(returned);
    EXPECT_TRUE(GetParam().intact(t));
}

TEST_P(every_blocking_wait_of_sync, is_ended_by_a_stop_of_a_thread) {
    things t;
    ending e;
    std::atomic<weft::flow*> waits{nullptr};
    std::atomic<bool> over{false};
    std::thread thread([&] {
        waits = &weft::detail::this_thread_host().own_flow();
        block_for([&] { return GetParam().blocks(t); }, no_limit, e);
        while (!over) std::this_thread::yield();
    });
    while (waits == nullptr) std::this_thread::yield();
    waits.load()->request_stop(weft::stop_reason::shutdown);
    over = true;
    thread.join();
    EXPECT_TRUE(e.one_of_two(weft::stop_reason::shutdown));
}

TEST_P(every_blocking_wait_of_sync, is_ended_by_the_deadline_of_a_scope_of_a_thread) {
    things t;
    ending e;
    std::thread([&] { block_for([&] { return GetParam().blocks(t); }, 1ms, e); }).join();
    EXPECT_TRUE(e.one_of_two(weft::stop_reason::deadline));
    EXPECT_TRUE(e.expired);
    EXPECT_GE(e.woken - e.begun, 1ms);
    EXPECT_TRUE(GetParam().intact(t));
}

INSTANTIATE_TEST_SUITE_P(sync, every_blocking_wait_of_sync, ::testing::ValuesIn(every_wait),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
