#include "weft/manager/detail/manager_timer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/support/loop_thread.hpp"
#include "test/support/manual_executor.hpp"

using namespace std::chrono_literals;

namespace {

using weft::detail::manager_timer;

struct timed {
    weft::testing::manual_executor on;
    int calls = 0;
    weft::time_point next = weft::never;
    manager_timer* timer = new manager_timer(on, call, this);

    static weft::time_point call(void* self) noexcept {
        auto& t = *static_cast<timed*>(self);
        ++t.calls;
        return std::exchange(t.next, weft::never);
    }
    void here(void (*f)(timed&)) {
        on.call([&] { f(*this); });
    }
    ~timed() {
        timer->release();
        on.run_all();
    }
};

TEST(manager_timer, calls_back_at_the_earliest_deadline) {
    timed t;
    t.here([](timed& me) {
        me.timer->need(me.on.now() + 5s);
        me.timer->need(me.on.now() + 9s);
        me.timer->need(me.on.now() + 2s);
    });
    EXPECT_EQ(t.on.timer_count(), 1u);
    t.on.advance(1s);
    EXPECT_EQ(t.calls, 0);
    t.next = t.on.now() + 4s;
    t.on.advance(1s);
    EXPECT_EQ(t.calls, 1);
    t.on.advance(2s);
    EXPECT_EQ(t.calls, 1);
    t.on.advance(1s);
    EXPECT_EQ(t.calls, 2);
    EXPECT_EQ(t.on.timer_count(), 0u) << "nothing more to come";
}

TEST(manager_timer, is_armed_from_another_thread_by_a_post) {
    timed t;
    t.timer->need(t.on.now() + 2s);
    t.timer->need(t.on.now() + 1s);
    EXPECT_EQ(t.on.pending_count(), 1u) << "one is enough";
    EXPECT_EQ(t.on.timer_count(), 0u);
    t.on.run_all();
    t.on.advance(1s);
    EXPECT_EQ(t.calls, 1);
}

TEST(manager_timer, is_disarmed_when_no_deadline_remains) {
    timed t;
    t.here([](timed& me) { me.timer->need(me.on.now() + 1s); });
    t.here([](timed& me) { me.timer->rest(); });
    EXPECT_EQ(t.on.timer_count(), 0u);
    t.timer->rest();
    EXPECT_EQ(t.on.pending_count(), 0u) << "it rests already";
    t.here([](timed& me) { me.timer->need(me.on.now() + 1s); });
    t.timer->rest();
    t.on.run_all();
    EXPECT_EQ(t.on.timer_count(), 0u);
    t.on.advance(2s);
    EXPECT_EQ(t.calls, 0);
}

TEST(manager_timer, makes_no_call_after_its_release) {
    for (int i = 0; i < 50; ++i) {
        weft::testing::loop_thread there;
        std::atomic<int> calls{0};
        auto* timer = new manager_timer(
            there.loop(),
            [](void* n) noexcept {
                ++*static_cast<std::atomic<int>*>(n);
                return weft::steady_now();
            },
            &calls);
        timer->need(weft::steady_now());
        while (calls == 0) std::this_thread::yield();
        timer->release();
        const int so_far = calls;
        std::this_thread::yield();
        EXPECT_EQ(calls, so_far) << "no call after it was let go of";
    }
}

}  // namespace
