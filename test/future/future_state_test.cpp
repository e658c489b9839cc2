#include "weft/future/detail/future_state.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "test/support/cpu_of_thread.hpp"

namespace {

using weft::stop_reason;
using weft::detail::future_word;
using weft::detail::listener;
using weft::detail::stop_word;

struct noting : listener {
    int times = 0;
    noting() : listener{[](listener& l) noexcept { ++static_cast<noting&>(l).times; }} {}
};

void give_outcome(future_word& w) {
    if (listener* l = w.publish()) {
        l->notify(*l);
        w.set_notified();
    }
}

TEST(future_word, can_be_claimed_only_once) {
    future_word w;
    EXPECT_FALSE(w.is_claimed());
    EXPECT_TRUE(w.claim());
    EXPECT_FALSE(w.claim());
    EXPECT_TRUE(w.is_claimed());
    EXPECT_FALSE(w.is_done());
    future_word alone;
    EXPECT_TRUE(alone.claim_alone());
    EXPECT_FALSE(alone.claim_alone());
    EXPECT_FALSE(alone.claim());
}

TEST(future_word, notifies_the_attached_listener_and_refuses_later_ones) {
    future_word w;
    noting n, late;
    EXPECT_TRUE(w.attach(n));
    EXPECT_TRUE(w.claim());
    EXPECT_EQ(n.times, 0);
    give_outcome(w);
    EXPECT_TRUE(w.is_done());
    EXPECT_EQ(n.times, 1);
    EXPECT_FALSE(w.attach(late));
    EXPECT_FALSE(w.detach());
    EXPECT_EQ(late.times, 0);
}

TEST(future_word, does_not_notify_a_detached_listener) {
    future_word w;
    noting n, other;
    EXPECT_TRUE(w.attach(n));
    EXPECT_TRUE(w.detach());
    EXPECT_TRUE(w.attach(other));
    EXPECT_TRUE(w.claim());
    give_outcome(w);
    EXPECT_EQ(n.times, 0);
    EXPECT_EQ(other.times, 1);
}

TEST(future_word, that_starts_done_is_claimed_and_refuses_listeners) {
    future_word w;
    noting n;
    w.begin_done();
    EXPECT_TRUE(w.is_done());
    EXPECT_FALSE(w.claim());
    EXPECT_FALSE(w.attach(n));
}

// The thread that detaches may destroy the listener at once: under ThreadSanitizer and
// AddressSanitizer.
TEST(future_word, detach_returns_only_when_the_listener_is_unused) {
    for (int i = 0; i < 2000; ++i) {
        future_word w;
        auto* n = new noting;
        EXPECT_TRUE(w.attach(*n));
        std::thread gives([&] {
            EXPECT_TRUE(w.claim());
            give_outcome(w);
        });
        const bool in_time = w.detach();
        EXPECT_EQ(n->times, in_time ? 0 : 1);
        delete n;
        gives.join();
    }
}

// What the thread spends while another needs 300 ms for what it is about to do.
std::chrono::nanoseconds spent_on_waiting(auto begin, auto wait, auto end) {
    std::atomic<bool> has_begun{false};
    std::thread slow([&] {
        begin();
        has_begun = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        end();
    });
    while (!has_begun) std::this_thread::yield();
    const auto before = weft::testing::cpu_of_thread();
    wait();
    const auto spent = weft::testing::cpu_of_thread() - before;
    slow.join();
    return spent;
}

TEST(future_word, detach_yields_the_cpu_during_a_slow_notification) {
    future_word w;
    noting n;
    ASSERT_TRUE(w.attach(n));
    ASSERT_TRUE(w.claim());
    const auto spent =
        spent_on_waiting([&] { EXPECT_EQ(w.publish(), &n); }, [&] { EXPECT_FALSE(w.detach()); },
                         [&] { w.set_notified(); });
    EXPECT_LT(spent, std::chrono::milliseconds(100));
}

TEST(stop_word, close_yields_the_cpu_during_a_slow_delivery) {
    stop_word w;
    EXPECT_EQ(w.open(), stop_reason::none);
    const auto spent =
        spent_on_waiting([&] { EXPECT_EQ(w.ask(stop_reason::user), stop_word::answer::deliver); },
                         [&] { EXPECT_EQ(w.close(), stop_reason::user); }, [&] { w.delivered(); });
    EXPECT_LT(spent, std::chrono::milliseconds(100));
}

TEST(stop_word, records_requests_while_closed_and_delivers_while_open) {
    stop_word w;
    EXPECT_EQ(w.asked(), stop_reason::none);
    EXPECT_EQ(w.ask(stop_reason::deadline), stop_word::answer::noted);
    EXPECT_EQ(w.ask(stop_reason::user), stop_word::answer::again);
    EXPECT_EQ(w.open(), stop_reason::deadline);
    EXPECT_EQ(w.close(), stop_reason::deadline);

    stop_word open;
    EXPECT_EQ(open.open(), stop_reason::none);
    EXPECT_EQ(open.ask(stop_reason::shutdown), stop_word::answer::deliver);
    EXPECT_EQ(open.ask(stop_reason::user), stop_word::answer::again);
    open.delivered();
    EXPECT_EQ(open.asked(), stop_reason::shutdown);
    EXPECT_EQ(open.close(), stop_reason::shutdown);
}

TEST(stop_word, close_waits_for_a_delivery_in_progress) {
    for (int i = 0; i < 2000; ++i) {
        stop_word w;
        auto target = std::make_unique<int>(0);
        EXPECT_EQ(w.open(), stop_reason::none);
        std::thread asks([&] {
            if (w.ask(stop_reason::user) != stop_word::answer::deliver) return;
            ++*target;
            w.delivered();
        });
        const stop_reason asked = w.close();
        EXPECT_EQ(*target, asked == stop_reason::user ? 1 : 0);
        target.reset();
        asks.join();
    }
}

}  // namespace
