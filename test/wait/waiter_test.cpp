#include "weft/wait/waiter.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/support/allocations.hpp"
#include "test/wait/names.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/stopped.hpp"

namespace weft {
namespace {

using namespace testing::names;

plain_coroutine pass_until(gate& g, time_point t, std::vector<wait_status>& ends) {
    ends.push_back(co_await g.async_pass_until(t));
}

plain_coroutine count_passes(gate& g, int& passed) {
    co_await g.async_pass();
    ++passed;
}

TEST(waiter, a_wake_is_posted_and_never_resumes_inline) {
    manual_executor on;
    gate g;
    int passed = 0;
    plain_coroutine c = count_passes(g, passed);
    c.start(on);
    on.call([&] {
        EXPECT_TRUE(g.let_one_pass());
        EXPECT_EQ(passed, 0);
    });
    EXPECT_EQ(passed, 0);
    EXPECT_EQ(on.run_all(), 1u);
    EXPECT_EQ(passed, 1);
}

struct told_late {
    static constexpr bool reports_stop = true;
    int thing = 0;
    bool ready() { return false; }
    bool start(waiter& w) {
        w.enlist("a thing", nullptr, this, [](waiter&) noexcept {});
        w.wait_for(&thing);
        EXPECT_EQ(w.thing(), &thing);
        return false;
    }
    void take(const waiter*, wait_status) {}
};

TEST(waiter, reports_an_object_set_after_its_operation) {
    told_late op;
    sync_wait(op);
}

struct hasty {
    static constexpr bool reports_stop = true;
    bool ready() { return false; }
    bool start(waiter& w) {
        w.enlist("haste", this, this, [](waiter&) noexcept {});
        EXPECT_TRUE(w.claim());
        w.wake();
        return true;
    }
    wait_status take(const waiter*, wait_status how) { return how; }
};

// The event comes between start() and the suspension, which other threads cannot distinguish.
TEST(waiter, a_wake_before_the_suspension_is_remembered) {
    EXPECT_EQ(sync_wait(hasty()), wait_status::woken);
}

TEST(waiter, a_wake_disarms_the_deadline) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<wait_status> ends;
    plain_coroutine c = pass_until(g, on.now() + 1ms, ends);
    c.start(on, &f);
    EXPECT_EQ(on.timer_count(), 1u);
    g.let_one_pass();
    on.run_all();
    EXPECT_EQ(ends, std::vector{wait_status::woken});
    EXPECT_EQ(on.timer_count(), 0u);
}

// Waits for one event, until a deadline, and then for another, without one.
struct in_two_steps {
    static constexpr bool reports_stop = true;
    time_point until;
    waiter* waits = nullptr;
    int steps = 0;

    bool ready() { return false; }
    bool start(waiter& w) {
        waits = &w;
        w.enlist("two things", this, this, [](waiter&) noexcept {});
        return true;
    }
    time_point deadline() const { return until; }
    bool again(waiter& w) {
        if (++steps == 2) return true;
        w.drop_deadline();
        EXPECT_TRUE(w.rearm(never, reports_stop));
        return false;
    }
    wait_status take(const waiter*, wait_status how) { return how; }
};

plain_coroutine go_through(in_two_steps& op, std::vector<wait_status>& ends) {
    ends.push_back(co_await op);
}

TEST(waiter, a_dropped_deadline_ends_no_later_step) {
    manual_executor on;
    in_two_steps op{on.now() + 1ms};
    std::vector<wait_status> ends;
    plain_coroutine c = go_through(op, ends);
    c.start(on);
    EXPECT_EQ(on.timer_count(), 1u);
    for (int step = 1; step <= 2; ++step) {
        ASSERT_TRUE(op.waits->claim());
        op.waits->wake();
        on.run_all();
        EXPECT_EQ(op.steps, step);
        EXPECT_EQ(on.timer_count(), 0u);
    }
    EXPECT_EQ(ends, std::vector{wait_status::woken});
}

// Continues to wait after its deadline, while another thread requests a stop of its flow.
struct waits_on {
    static constexpr bool reports_stop = true;
    flow& of;
    time_point until;
    bool stands = false;

    bool ready() { return false; }
    bool start(waiter& w) {
        w.enlist("a thing", this, this,
                 [](waiter& me) noexcept { me.operation<waits_on>().stands = false; });
        return stands = true;
    }
    time_point deadline() const { return until; }
    bool again(waiter& w) {
        of.stop.request_stop(stop_reason::user);  // its message has not come yet
        until += 1ms;
        if (!w.rearm(until, reports_stop)) return true;
        stands = true;
        return false;
    }
    wait_status take(const waiter*, wait_status how) {
        EXPECT_FALSE(stands);
        return how;
    }
};

plain_coroutine wait_on(waits_on& op, std::vector<wait_status>& ends) {
    ends.push_back(co_await op);
}

TEST(waiter, is_not_woken_by_a_stop_before_it_is_queued_again) {
    manual_executor on;
    coroutine_flow f(on);
    waits_on op{f, on.now() + 1ms};
    std::vector<wait_status> ends;
    plain_coroutine c = wait_on(op, ends);
    c.start(on, &f);
    on.advance(1ms);
    EXPECT_TRUE(op.stands);
    EXPECT_TRUE(ends.empty());
    EXPECT_EQ(on.timer_count(), 1u);
    on.call([&] { f.deliver_stop(); });  // the message
    on.run_all();
    EXPECT_EQ(ends, std::vector{wait_status::stopped});
    EXPECT_EQ(on.timer_count(), 0u);
}

// Waits on at every event.
struct waits_for_ever {
    static constexpr bool reports_stop = true;
    waiter* waits = nullptr;

    bool ready() { return false; }
    bool start(waiter& w) {
        waits = &w;
        w.enlist("a thing", this, this, [](waiter&) noexcept {});
        return true;
    }
    bool again(waiter& w) { return !w.rearm(never, reports_stop); }
    wait_status take(const waiter* w, wait_status how) {
        EXPECT_EQ(w->reason(), stop_reason::none);
        return how;
    }
};

plain_coroutine wait_for_ever(waits_for_ever& op, std::vector<wait_status>& ends) {
    ends.push_back(co_await op);
}

// No flow has a request that would be found again.
TEST(waiter, that_goes_on_is_ended_by_a_stop_for_it_alone_that_came_after_its_event) {
    manual_executor on;
    waits_for_ever op;
    std::vector<wait_status> ends;
    plain_coroutine c = wait_for_ever(op, ends);
    c.start(on);
    const auto wake = [&] {
        ASSERT_TRUE(op.waits->claim());
        op.waits->wake();
    };
    wake();
    on.run_all();
    EXPECT_TRUE(ends.empty());
    wake();
    on.call([&] { op.waits->stop(stop_reason::none); });
    EXPECT_TRUE(ends.empty());
    on.run_all();
    EXPECT_EQ(ends, std::vector{wait_status::stopped});
}

// What comes when, in units of the clock, and how the wait ends.
TEST(waiter, ends_by_the_first_of_event_deadline_and_stop) {
    enum what { none, event, stop };
    struct {
        what before_deadline, at_deadline;
        wait_status end;
    } const table[] = {
        {none, none, wait_status::timed_out}, {event, none, wait_status::woken},
        {stop, none, wait_status::stopped},   {event, stop, wait_status::woken},
        {stop, event, wait_status::stopped},  {none, event, wait_status::woken},
        {none, stop, wait_status::stopped},
    };
    for (const auto& row : table) {
        manual_executor on;
        coroutine_flow f(on);
        gate g;
        std::vector<wait_status> ends;
        plain_coroutine c = pass_until(g, on.now() + 2ms, ends);
        c.start(on, &f);
        const auto happens = [&](what w) {
            on.call([&] {
                if (w == event) g.let_one_pass();
                if (w == stop) f.request_stop(stop_reason::user);
            });
        };
        on.set(on.now() + 1ms);
        happens(row.before_deadline);
        on.set(on.now() + 1ms);
        happens(row.at_deadline);
        on.fire_due();
        on.run_all();
        EXPECT_EQ(ends, std::vector{row.end});
        EXPECT_FALSE(g.anybody_waits());
        EXPECT_EQ(on.timer_count(), 0u);
        EXPECT_FALSE(g.let_one_pass()) << "an event that comes later finds nobody";
    }
}

TEST(waiter, reports_the_first_stop_reason) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    stop_reason seen = stop_reason::none;
    f.set_deadline(on.now() + 1ms);
    const auto body = [](gate& gate, stop_reason& reason) -> plain_coroutine {
        try {
            co_await gate.async_pass();
        } catch (const stopped& s) {
            reason = s.reason;
        }
    };
    plain_coroutine c = body(g, seen);
    c.start(on, &f);
    on.call([&] { f.request_stop(stop_reason::shutdown); });
    on.set(on.now() + 1ms);
    on.fire_due();  // the scope's deadline comes before the stopped wait has run
    on.run_all();
    EXPECT_EQ(seen, stop_reason::shutdown);
}

TEST(waiter, is_cancelled_when_its_frame_is_destroyed) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    int passed = 0;
    std::vector<wait_status> ends;
    {
        plain_coroutine in_flow = pass_until(g, on.now() + 1ms, ends);
        in_flow.start(on, &f);
        plain_coroutine in_none = count_passes(g, passed);
        in_none.start(on);
    }
    EXPECT_FALSE(g.anybody_waits());
    EXPECT_EQ(on.timer_count(), 0u);
    EXPECT_EQ(f.waiting, nullptr);
    EXPECT_EQ(on.run_all(), 0u);
    EXPECT_EQ(passed, 0);
}

TEST(waiter, of_a_destroyed_frame_cancels_its_posted_wake) {
    manual_executor on;
    gate g;
    int passed = 0;
    plain_coroutine first = count_passes(g, passed);
    plain_coroutine second = count_passes(g, passed);
    first.start(on);
    second.start(on);
    g.open();
    EXPECT_EQ(on.pending_count(), 2u);
    first.destroy();
    EXPECT_EQ(on.pending_count(), 1u);
    on.run_all();
    EXPECT_EQ(passed, 1);
}

// The event has claimed the waiter on another thread and is about to post it.
TEST(waiter, of_a_destroyed_frame_cancels_a_wake_about_to_be_posted) {
    const int rounds = slow ? 200 : 1'000;
    manual_executor on;
    int passed = 0;
    std::atomic<gate*> next{nullptr};
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over)
            if (gate* g = next.exchange(nullptr))
                g->open();
            else
                std::this_thread::yield();
    });
    for (int i = 0; i < rounds; ++i) {
        gate g;
        plain_coroutine c = count_passes(g, passed);
        c.start(on);
        next = &g;
        while (g.anybody_waits()) std::this_thread::yield();  // claimed
        c.destroy();
        EXPECT_EQ(on.pending_count(), 0u);
    }
    over = true;
    other.join();
    EXPECT_EQ(passed, 0);
}

struct children {
    static constexpr bool reports_stop = true;
    waiter* who = nullptr;
    int asked = 0;
    bool ready() { return false; }
    bool start(waiter& w) {
        who = &w;
        w.enlist(
            "children", this, this, [](waiter&) noexcept {},
            [](waiter& of, stop_reason) noexcept { ++of.operation<children>().asked; });
        return true;
    }
    stop_reason take(const waiter* w, wait_status how) {
        EXPECT_EQ(how, wait_status::woken);
        return w->reason();
    }
};

// An operation that cannot be left at once is interrupted once, and ends the wait by itself.
TEST(waiter, uncancellable_is_interrupted_once_and_keeps_waiting) {
    manual_executor on;
    coroutine_flow f(on);
    children all;
    std::optional<stop_reason> seen;
    const auto body = [](children& c, std::optional<stop_reason>& s) -> plain_coroutine {
        s = co_await c;
    };
    f.set_deadline(on.now() + 1ms);
    plain_coroutine c = body(all, seen);
    c.start(on, &f);
    on.call([&] { f.request_stop(stop_reason::sibling_failed); });
    on.advance(1ms);
    EXPECT_EQ(all.asked, 1);
    EXPECT_FALSE(seen.has_value()) << "asked, it waits until they have ended";
    ASSERT_TRUE(all.who->claim());
    all.who->wake();
    on.run_all();
    EXPECT_EQ(seen, stop_reason::sibling_failed);
}

// A wait that can report a stop reports it; one that cannot is not stopped in a destructor that
// runs because of an exception.
TEST(waiter, in_a_destructor_during_unwinding_is_not_stopped) {
    struct cleanup {
        gate& g;
        ~cleanup() {
            EXPECT_EQ(sync_wait(g.async_pass_until(never)), wait_status::stopped);
            sync_wait(g.async_pass());
        }
    };
    gate g;
    std::thread stopped_one([&] {
        detail::this_thread_host().own_flow().request_stop(stop_reason::user);
        try {
            EXPECT_THROW(sync_wait(g.async_pass()), stopped);
            const cleanup waits{g};
            throw std::runtime_error("down");
        } catch (const std::runtime_error&) {
        }
        EXPECT_THROW(sync_wait(g.async_pass()), stopped);
    });
    while (!g.let_one_pass()) std::this_thread::yield();
    stopped_one.join();
}

// The exception is that of the code that resumes the coroutine, and not the coroutine's.
TEST(waiter, of_a_coroutine_is_stopped_even_if_its_resumer_unwinds) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    bool was_stopped = false;
    const auto body = [](gate& gate, bool& s) -> plain_coroutine {
        try {
            co_await gate.async_pass();
        } catch (const stopped&) {
            s = true;
        }
    };
    plain_coroutine c = body(g, was_stopped);
    struct cleanup {
        plain_coroutine& c;
        manual_executor& on;
        flow& f;
        ~cleanup() { c.start(on, &f); }
    };
    try {
        const cleanup begins{c, on, f};
        throw std::runtime_error("down");
    } catch (const std::runtime_error&) {
    }
    EXPECT_FALSE(c.done());
    on.call([&] { f.request_stop(stop_reason::user); });
    on.run_all();
    EXPECT_TRUE(was_stopped);
    g.open();
    on.run_all();
}

struct stops_its_flow {
    static constexpr bool reports_stop = true;
    flow& of;
    bool ready() { return false; }
    bool start(waiter& w) {
        w.enlist("a stop", this, this, [](waiter&) noexcept {});
        of.request_stop(stop_reason::user);
        return true;
    }
    wait_status take(const waiter*, wait_status how) { return how; }
};

// The wait was allowed to begin, and the stop did not find it waiting.
TEST(waiter, is_ended_by_a_stop_while_its_operation_starts) {
    manual_executor on;
    coroutine_flow f(on);
    std::optional<wait_status> how;
    const auto body = [](flow& of, std::optional<wait_status>& h) -> plain_coroutine {
        h = co_await stops_its_flow{of};
    };
    plain_coroutine c = body(f, how);
    c.start(on, &f);
    on.run_all();
    EXPECT_EQ(how, wait_status::stopped);
    EXPECT_EQ(f.waiting, nullptr);
}

// The checks of an executor that ends, or would offload the flow's turn.
TEST(waiter, sees_the_outer_waiters_of_its_flow) {
    manual_executor on;
    coroutine_flow f(on);
    waiter outer(f), inner(f);
    for (waiter* w : {&outer, &inner}) {
        w->enlist("something", nullptr, nullptr, [](waiter&) noexcept {});
        w->begin_wait();
    }
    EXPECT_FALSE(inner.awaits_others());
    EXPECT_FALSE(inner.is_for_outside());
    outer.mark_external();
    EXPECT_FALSE(inner.awaits_others());
    EXPECT_TRUE(inner.is_for_outside());
    outer.mark_cross_executor();
    EXPECT_TRUE(inner.awaits_others());
    EXPECT_TRUE(outer.awaits_others());
    EXPECT_FALSE(inner.is_only(inner.handle));
    EXPECT_TRUE(outer.is_only(outer.handle));
    EXPECT_FALSE(outer.is_only(std::noop_coroutine())) << "it is another's turn";
    inner.end_wait();
    outer.end_wait();
    EXPECT_EQ(f.waiting, nullptr);
}

// --------------------------------------------------------------------------------------- threads

// The event comes to many at about the time at which a deadline or a stop does.
TEST(waiter, reports_exactly_one_of_three_endings_in_every_race) {
    constexpr std::size_t at_once = 100;
    const int rounds = slow ? 100 : 1'000;
    struct racer {
        coroutine_flow f;
        gate g;
        std::vector<wait_status> ends;
        plain_coroutine c;
        explicit racer(manual_executor& on) : f(on) {}
    };
    using racers = std::vector<std::unique_ptr<racer>>;
    std::atomic<racers*> next{nullptr};
    std::atomic<bool> over{false};
    std::thread opener([&] {
        while (!over) {
            if (racers* all = next.load()) {
                for (auto& r : *all) r->g.open();
                next = nullptr;
            } else {
                std::this_thread::yield();
            }
        }
    });
    manual_executor on;
    std::size_t count[4] = {};
    for (int round = 0; round < rounds; ++round) {
        racers all;
        for (std::size_t i = 0; i < at_once; ++i) {
            racer& r = *all.emplace_back(std::make_unique<racer>(on));
            r.c = pass_until(r.g, on.now() + duration(1 + i % 3), r.ends);
            r.c.start(on, &r.f);
        }
        next = &all;
        if (round % 2 == 0) std::this_thread::yield();
        on.advance(1ns);
        on.call([&] {
            for (std::size_t i = at_once; i > 0; i -= 2)
                all[i - 1]->f.request_stop(stop_reason::user);
        });
        on.advance(1ns);
        while (next != nullptr) std::this_thread::yield();
        on.run_all();
        for (auto& r : all) {
            ASSERT_EQ(r->ends.size(), 1u);
            ++count[static_cast<int>(r->ends[0])];
        }
    }
    over = true;
    opener.join();
    EXPECT_EQ(count[1] + count[2] + count[3], at_once * static_cast<std::size_t>(rounds));
    EXPECT_GT(count[1], 0u);
    EXPECT_GT(count[2] + count[3], 0u);
}

struct counted_waiter : detail::frame {
    waiter w;
    wait_node node;
    int* ran;
    counted_waiter(executor& on, int& n)
        : frame{[](frame* f) { ++*static_cast<counted_waiter*>(f)->ran; }, nullptr},
          w(on),
          node(&w),
          ran(&n) {
        w.handle = handle();
    }
};

// An executor that runs nothing: what is posted stays queued, stored in the waiters.
class quiet_executor final : public executor {
public:
    void post(runnable& r) noexcept override { queue_.push_back(r); }
    void defer(std::coroutine_handle<>, flow*) noexcept override {}
    void cancel_post(runnable&) noexcept override {}
    void arm(timer_node&) noexcept override {}
    void disarm(timer_node&) noexcept override {}
    time_point now() const noexcept override { return {}; }
    void register_flow(flow&) noexcept override {}
    void deregister_flow(flow&) noexcept override {}
    bool running_in_this_thread() const noexcept override { return true; }
    void run_all() {
        while (runnable* r = queue_.pop_front()) detail::run_turn(*this, r->handle, r->of);
    }

private:
    forward_queue<runnable> queue_;
};

TEST(waiter, a_million_wakes_allocate_nothing) {
    const int wakes = slow ? 100'000 : 1'000'000;
    quiet_executor on;
    gate g;
    int passed = 0;
    const auto body = [](gate& gate, int& n) -> plain_coroutine {
        for (;; ++n) co_await gate.async_pass();
    };
    plain_coroutine c = body(g, passed);
    c.start(on);
    const std::size_t before = testing::allocations();
    while (passed != wakes && g.let_one_pass()) on.run_all();
    EXPECT_EQ(testing::allocations(), before);
    EXPECT_EQ(passed, wakes);
}

// A sanitizer, which counts nothing here, searches for leaks.
TEST(waiter, on_a_thread_leaves_nothing_behind_when_the_thread_ends) {
    const auto thread_waits = [] {
        std::thread([] {
            gate g;
            EXPECT_EQ(await(g.async_pass_until(steady_now())), wait_status::timed_out);
        }).join();
    };
    thread_waits();  // what is made once, for all
    const std::size_t before = testing::living_allocations();
    for (int i = 0; i < 3; ++i) thread_waits();
    EXPECT_EQ(testing::living_allocations(), before);
}

// The message of the stop has a reference to the thread's flow.
TEST(waiter, on_a_thread_that_is_stopped_leaves_nothing_behind) {
    const auto thread_is_stopped = [] {
        gate g;
        std::atomic<flow*> waits{nullptr};
        std::thread stopped_one([&] {
            waits = &detail::this_thread_host().own_flow();
            EXPECT_THROW(await(g.async_pass()), stopped);
        });
        while (waits == nullptr || !g.anybody_waits()) std::this_thread::yield();
        waits.load()->request_stop(stop_reason::shutdown);
        stopped_one.join();
    };
    thread_is_stopped();  // what is made once, for all
    const std::size_t before = testing::living_allocations();
    for (int i = 0; i < 3; ++i) thread_is_stopped();
    EXPECT_EQ(testing::living_allocations(), before);
}

void* wake_a_million(void* ran) {
    const std::size_t count = slow ? 100'000 : 1'000'000;
    quiet_executor on;
    wait_queue queue;
    std::vector<std::unique_ptr<counted_waiter>> all;
    all.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(std::make_unique<counted_waiter>(on, *static_cast<int*>(ran)));
        const std::lock_guard held(queue);
        queue.push_back(all.back()->node);
    }
    const std::size_t before = testing::allocations();
    wait_list claimed;
    {
        const std::lock_guard held(queue);
        queue.claim_all(claimed);
    }
    wait_queue::wake_all(claimed);
    on.run_all();
    EXPECT_EQ(testing::allocations(), before);
    EXPECT_EQ(*static_cast<int*>(ran), static_cast<int>(count));
    return nullptr;
}

TEST(waiter, a_million_are_woken_without_recursion) {
    pthread_attr_t small;
    ASSERT_EQ(pthread_attr_init(&small), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&small, 256 * 1024), 0);
    pthread_t thread;
    int ran = 0;
    ASSERT_EQ(pthread_create(&thread, &small, wake_a_million, &ran), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&small);
    EXPECT_GE(ran, 100'000);
}

}  // namespace
}  // namespace weft
