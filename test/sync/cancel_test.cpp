// Every wait of this layer, ended early: by a stop, by the deadline of a scope, by the end of its
// loop. The waiter comes back within a millisecond of the loop's time, stands in no line, and what
// it waited for is as if it had never come.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/barrier.hpp"
#include "weft/sync/broadcast.hpp"
#include "weft/sync/condition_variable.hpp"
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
#include "weft/task/task.hpp"
#include "weft/wait/shield.hpp"
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
    weft::shared_mutex shared;
    weft::condition_variable condition;
    weft::once_flag once;
    weft::channel<int> empty, full{1}, other;
    weft::unbounded_channel<int> unbounded;
    weft::oneshot<int> answer;
    weft::broadcast<int> broadcast{2};
    weft::broadcast<int>::receiver receiver{broadcast};

    things() {
        EXPECT_TRUE(mutex.try_lock());
        EXPECT_TRUE(recursive.try_lock());
        EXPECT_TRUE(shared.try_lock());
        EXPECT_TRUE(weft::await(once.async_enter()));
        EXPECT_TRUE(full.try_send(1));
    }
    ~things() {
        mutex.unlock();
        recursive.unlock();
        shared.unlock();
        once.leave(false);
    }
};

struct wait {
    const char* name;
    // Whether it says by its return that it was ended early; otherwise it throws.
    bool (*run)(things&);
    // Afterwards, with the thing made available: whether it is all there.
    bool (*intact)(things&);
};

bool cancelled(std::error_code e) { return e == std::errc::operation_canceled; }
bool is_would_wait(std::error_code e) { return e == std::errc::resource_unavailable_try_again; }
template <class T>
bool gets_back(T& m) {  // by the one who holds it
    m.unlock();
    return m.try_lock();
}
bool channels_are_free(things& t) {
    return is_would_wait(t.empty.try_send(1).error()) && *t.full.try_recv() == 1 &&
           is_would_wait(t.full.try_recv().error()) && is_would_wait(t.other.try_recv().error());
}
template <class Op>
auto in_a_task(Op op) -> weft::task<> {
    co_await op();
}

const auto forever = weft::never;
const wait every_wait[] = {
    {"manual_reset_event_wait", [](things& t) { return t.manual.wait(), false; },
     [](things& t) { return !t.manual.is_set(); }},
    {"manual_reset_event_wait_until", [](things& t) { return !t.manual.wait_until(forever); },
     [](things& t) { return !t.manual.is_set(); }},
    {"auto_reset_event_wait", [](things& t) { return t.automatic.wait(), false; },
     [](things& t) { return t.automatic.set(), t.automatic.try_wait(); }},
    {"auto_reset_event_wait_until", [](things& t) { return !t.automatic.wait_until(forever); },
     [](things& t) { return t.automatic.set(), t.automatic.try_wait(); }},
    {"semaphore_acquire", [](things& t) { return t.semaphore.acquire(), false; },
     [](things& t) { return t.semaphore.release(), t.semaphore.try_acquire(); }},
    {"semaphore_try_acquire_until",
     [](things& t) { return !t.semaphore.try_acquire_until(forever); },
     [](things& t) { return t.semaphore.release(), t.semaphore.try_acquire(); }},
    {"latch_wait", [](things& t) { return t.latch.wait(), false; },
     [](things& t) { return !t.latch.try_wait(); }},
    {"latch_wait_until", [](things& t) { return !t.latch.wait_until(forever); },
     [](things& t) { return !t.latch.try_wait(); }},
    {"wait_group_wait", [](things& t) { return t.group.wait(), false; },
     [](things& t) { return t.group.count() == 1; }},
    {"wait_group_wait_until", [](things& t) { return !t.group.wait_until(forever); },
     [](things& t) { return t.group.count() == 1; }},
    {"barrier_arrive_and_wait", [](things& t) { return t.barrier.arrive_and_wait(), false; },
     [](things& t) { return t.barrier.arrive_and_wait(), true; }},
    {"once_enter", [](things& t) { return weft::call_once(t.once, [] {}), false; },
     [](things& t) { return !t.once.is_done(); }},
    {"mutex_lock", [](things& t) { return t.mutex.lock(), false; },
     [](things& t) { return gets_back(t.mutex); }},
    {"mutex_try_lock_until", [](things& t) { return !t.mutex.try_lock_until(forever); },
     [](things& t) { return gets_back(t.mutex); }},
    {"mutex_async_lock_in_a_task",
     [](things& t) { return weft::await(in_a_task([&] { return t.mutex.async_lock(); })), false; },
     [](things& t) { return gets_back(t.mutex); }},
    {"recursive_mutex_lock", [](things& t) { return t.recursive.lock(), false; },
     [](things& t) { return gets_back(t.recursive); }},
    {"recursive_mutex_try_lock_until",
     [](things& t) { return !t.recursive.try_lock_until(forever); },
     [](things& t) { return gets_back(t.recursive); }},
    {"shared_mutex_lock", [](things& t) { return t.shared.lock(), false; },
     [](things& t) { return gets_back(t.shared); }},
    {"shared_mutex_lock_shared", [](things& t) { return t.shared.lock_shared(), false; },
     [](things& t) { return gets_back(t.shared); }},
    {"shared_mutex_try_lock_until", [](things& t) { return !t.shared.try_lock_until(forever); },
     [](things& t) { return gets_back(t.shared); }},
    {"shared_mutex_try_lock_shared_until",
     [](things& t) { return !t.shared.try_lock_shared_until(forever); },
     [](things& t) { return gets_back(t.shared); }},
    {"condition_variable_wait",
     [](things& t) {
         std::unique_lock lock(t.free_mutex);
         t.condition.wait(lock);
         return false;
     },
     [](things& t) { return t.free_mutex.try_lock() && (t.free_mutex.unlock(), true); }},
    {"condition_variable_wait_until",
     [](things& t) {
         std::unique_lock lock(t.free_mutex);
         return t.condition.wait_until(lock, forever) == std::cv_status::timeout;
     },
     [](things& t) { return t.free_mutex.try_lock() && (t.free_mutex.unlock(), true); }},
    {"condition_variable_async_wait_in_a_task",
     [](things& t) {
         std::unique_lock lock(t.free_mutex);
         weft::await(in_a_task([&] { return t.condition.async_wait(lock); }));
         return false;
     },
     [](things& t) { return t.free_mutex.try_lock() && (t.free_mutex.unlock(), true); }},
    {"channel_recv", [](things& t) { return cancelled(t.empty.recv().error()); },
     channels_are_free},
    {"channel_recv_until", [](things& t) { return cancelled(t.empty.recv_for(1000h).error()); },
     channels_are_free},
    {"channel_send", [](things& t) { return cancelled(t.full.send(2).error()); },
     channels_are_free},
    {"channel_send_from_hand_to_hand", [](things& t) { return cancelled(t.other.send(2).error()); },
     channels_are_free},
    {"channel_iteration",
     [](things& t) {
         for (int i : t.empty) ADD_FAILURE() << i;
         return false;
     },
     channels_are_free},
    {"unbounded_channel_recv", [](things& t) { return cancelled(t.unbounded.recv().error()); },
     [](things& t) { return t.unbounded.send(1) && t.unbounded.size() == 1; }},
    {"oneshot_recv", [](things& t) { return cancelled(t.answer.recv().error()); },
     [](things& t) { return t.answer.send(3) && *t.answer.try_recv() == 3; }},
    {"broadcast_recv", [](things& t) { return cancelled(t.receiver.recv().error()); },
     [](things& t) { return t.broadcast.send(3) && *t.receiver.try_recv() == 3; }},
    {"select",
     [](things& t) {
         weft::select(weft::on_recv(t.empty, [](int) {}), weft::on_send(t.full, 2),
                      weft::on_closed(t.other, [] {}), weft::on_recv(t.other, [](int) {}));
         return false;
     },
     channels_are_free},
    {"select_with_on_stop",
     [](things& t) {
         return weft::select(weft::on_recv(t.empty, [](int) {}), weft::on_send(t.full, 2),
                             weft::after(1000h, [] {}), weft::on_stop([] {})) == 3;
     },
     channels_are_free},
};

class every_wait_of_sync : public ::testing::TestWithParam<wait> {
protected:
    // Runs the wait in a fiber that is ended by `end` at 10 ms of virtual time.
    template <class End>
    void ended_by(End end, weft::stop_reason reason) {
        weft::testing::virtual_loop l;
        things t;
        weft::time_point ended{}, woken{};
        bool said = false, threw = false;
        weft::stop_reason why = weft::stop_reason::none;
        weft::fiber waits(
            [&] {
                try {
                    said = GetParam().run(t);
                } catch (const weft::stopped& s) {
                    threw = true;
                    why = s.reason;
                }
                woken = weft::now();
            },
            {.on = l});
        weft::fiber ends(
            [&] {
                weft::this_fiber::sleep_for(10ms);
                EXPECT_EQ(woken, weft::time_point{}) << "it did not wait";
                ended = weft::now();
                end(waits);
            },
            {.on = l});
        l.run();
        waits.join();
        ends.join();
        EXPECT_TRUE(said || threw);
        EXPECT_FALSE(said && threw);
        if (threw) {
            EXPECT_EQ(why, reason);
        }
        EXPECT_LE(woken - ended, 1ms);
        EXPECT_TRUE(GetParam().intact(t));
    }
};

TEST_P(every_wait_of_sync, is_ended_by_a_stop) {
    ended_by([](weft::fiber& f) { EXPECT_TRUE(f.request_stop(weft::stop_reason::shutdown)); },
             weft::stop_reason::shutdown);
}

// The deadline is around the wait, and not the wait's own; the flow is not stopped, and goes on.
TEST_P(every_wait_of_sync, is_ended_by_the_deadline_of_a_scope) {
    weft::testing::virtual_loop l;
    things t;
    bool said = false, expired = false;
    weft::stop_reason why = weft::stop_reason::none;
    weft::time_point begun{}, woken{}, waited_again{};
    weft::fiber waits(
        [&] {
            begun = weft::now();
            {
                const weft::timeout_scope limit(10ms);
                try {
                    said = GetParam().run(t);
                } catch (const weft::stopped& s) {
                    why = s.reason;
                }
                woken = weft::now();
                expired = limit.expired();
            }
            weft::this_fiber::sleep_for(10ms);
            waited_again = weft::now();
        },
        {.on = l});
    l.run();
    EXPECT_FALSE(waits.join().stopped());
    EXPECT_NE(said, why == weft::stop_reason::deadline) << "one of the two";
    EXPECT_TRUE(expired);
    EXPECT_GE(woken - begun, 10ms);
    EXPECT_LE(woken - begun, 11ms);
    EXPECT_GE(waited_again - woken, 10ms) << "outside of the scope nothing ends a wait";
    EXPECT_TRUE(GetParam().intact(t));
}

TEST_P(every_wait_of_sync, is_not_begun_after_the_deadline_of_a_scope) {
    weft::testing::virtual_loop l;
    things t;
    bool said = false;
    weft::stop_reason why = weft::stop_reason::none;
    weft::fiber waits(
        [&] {
            const weft::timeout_scope limit(0ms);
            try {
                said = GetParam().run(t);
            } catch (const weft::stopped& s) {
                why = s.reason;
            }
        },
        {.on = l});
    l.run();
    EXPECT_FALSE(waits.join().stopped());
    EXPECT_NE(said, why == weft::stop_reason::deadline) << "one of the two";
    EXPECT_EQ(l.now(), weft::time_point{});
    EXPECT_TRUE(GetParam().intact(t));
}

TEST_P(every_wait_of_sync, is_not_begun_after_a_stop) {
    weft::testing::virtual_loop l;
    things t;
    bool early = false;
    weft::fiber waits(
        [&] {
            weft::current_flow()->request_stop(weft::stop_reason::user);
            try {
                early = GetParam().run(t);
            } catch (const weft::stopped&) {
                early = true;
            }
        },
        {.on = l});
    l.run();
    waits.join();
    EXPECT_TRUE(early);
    EXPECT_EQ(l.now(), weft::time_point{});
    EXPECT_TRUE(GetParam().intact(t));
}

// The loop ends while the fiber waits under a shield: it is unwound, and stands in no line.
TEST_P(every_wait_of_sync, is_taken_back_when_its_stack_is_unwound) {
    things t;
    bool returned = false;
    {
        weft::loop l;
        weft::fiber f(
            [&] {
                const weft::shield s;
                GetParam().run(t);
                returned = true;
            },
            {.on = &l});
        f.detach();
        l.run_until_idle();
    }
    EXPECT_FALSE(returned);
    EXPECT_TRUE(GetParam().intact(t));
}

INSTANTIATE_TEST_SUITE_P(sync, every_wait_of_sync, ::testing::ValuesIn(every_wait),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
