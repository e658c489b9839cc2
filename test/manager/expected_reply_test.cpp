#include "weft/manager/expected_reply.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/manager/managed.hpp"
#include "test/support/loop_thread.hpp"
#include "test/support/on_stack.hpp"
#include "test/support/outside.hpp"
#include "test/support/slow.hpp"
#include "test/support/stops_in_copy.hpp"
#include "weft/coroutine/shared_stack_group.hpp"

using namespace std::chrono_literals;

namespace {

enum class rpc_fault { late, gone };

}  // namespace

template <>
struct weft::end_error<rpc_fault> {
    static rpc_fault of(std::error_code why) noexcept {
        return why == std::errc::timed_out ? rpc_fault::late : rpc_fault::gone;
    }
};

namespace {

using weft::manager_errc;
using weft::testing::managed_world;

TEST(expected_reply, is_delivered_to_the_waiter_of_its_sequence) {
    managed_world w;
    std::string got;
    std::uint64_t number = 0;
    ASSERT_TRUE(w.m.spawn([&] {
        auto reply = w.m.expect<std::string>();
        number = reply.sequence();
        got = *reply.wait(3s);
    }));
    w.settle();
    EXPECT_FALSE(w.m.complete(number + 1, std::string("another's")));
    EXPECT_TRUE(w.m.complete(number, std::string("reply")));
    EXPECT_FALSE(w.m.complete(number, std::string("twice")));
    w.l.run();
    EXPECT_EQ(got, "reply");
    EXPECT_EQ(w.m.stats().late_reply_count, 2u);
    EXPECT_EQ(w.m.stats().awaited_reply_count, 0u);
}

TEST(expected_reply, can_arrive_before_the_wait) {
    managed_world w;
    auto reply = w.m.expect<std::unique_ptr<int>>(77);
    EXPECT_FALSE(reply.is_ready());
    EXPECT_TRUE(w.m.complete(77, std::make_unique<int>(4)));
    EXPECT_TRUE(reply.is_ready());
    EXPECT_EQ(**reply.wait(weft::never), 4);
    EXPECT_EQ(reply.wait(weft::never).error(), manager_errc::value_already_taken);
}

TEST(expected_reply, is_ignored_and_counted_when_late) {
    managed_world w;
    std::error_code why;
    ASSERT_TRUE(w.m.spawn([&]() -> weft::task<> {
        auto reply = w.m.expect<int>(5);
        why = (co_await reply.async_wait(weft::after(weft::now(), 1s))).error();
        EXPECT_FALSE(w.m.complete(5, 1));
        EXPECT_EQ((co_await reply.async_wait(weft::never)).error(), std::errc::timed_out);
    }));
    w.l.run();
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_EQ(w.m.stats().late_reply_count, 1u);
}

TEST(expected_reply, is_refused_after_its_waiter_was_stopped) {
    managed_world w;
    std::error_code why;
    const auto h = w.m.spawn_with_handle([&] { why = w.m.wait<int>(5, 1h).error(); });
    const auto killed = w.m.spawn_with_handle([&] { static_cast<void>(w.m.wait<int>(6, 1h)); });
    w.settle();
    w.m.cancel(h->id());
    w.m.kill(killed->id());
    w.settle();
    EXPECT_EQ(why, std::errc::operation_canceled);
    EXPECT_TRUE(killed->over());
    EXPECT_FALSE(w.m.complete(5, 1));
    EXPECT_FALSE(w.m.complete(6, 1));
    EXPECT_EQ(w.m.stats().awaited_reply_count, 0u);
    w.l.run();
}

TEST(expected_reply, with_a_sequence_in_use_fails_with_id_in_use) {
    managed_world w;
    auto first = w.m.expect<int>(9);
    auto second = w.m.expect<int>(9);
    EXPECT_EQ(second.wait(weft::never).error(), manager_errc::id_in_use);
    EXPECT_TRUE(w.m.complete(9, 1));
    EXPECT_EQ(*first.wait(weft::never), 1);
}

TEST(expected_reply, ignores_a_value_of_another_type) {
    managed_world w;
    auto reply = w.m.expect<int>(9);
    EXPECT_FALSE(w.m.complete(9, std::string("text")));
    EXPECT_FALSE(w.m.complete(9));
    EXPECT_EQ(w.m.stats().type_mismatch_count, 2u);
    EXPECT_TRUE(w.m.complete(9, 3));
    EXPECT_EQ(*reply.wait(weft::never), 3);
}

TEST(expected_reply, reports_its_end_as_a_user_defined_error) {
    managed_world w;
    using reply = weft::result<int, rpc_fault>;
    auto a = w.m.expect<reply>(1);
    const reply late = a.wait(weft::steady_now());
    EXPECT_EQ(late.error(), rpc_fault::late);
    auto b = w.m.expect<reply>(2);
    EXPECT_TRUE(w.m.complete(2, reply(weft::failure(rpc_fault::gone))));
    EXPECT_EQ(b.wait(weft::never).error(), rpc_fault::gone);
    auto c = w.m.expect<void>(3);
    EXPECT_TRUE(w.m.complete(3));
    EXPECT_TRUE(c.wait(weft::never));
}

TEST(expected_reply, is_excluded_from_deadlock_reports) {
    managed_world w;
    EXPECT_TRUE(weft::testing::waits_for_outside(
        [&] { static_cast<void>(w.m.wait<int>(5, weft::never)); }));
}

TEST(expected_reply_death, on_a_shared_stack_aborts) {
    if (!weft::testing::locals_lie_on_the_stack) GTEST_SKIP() << "locals are kept elsewhere";
    EXPECT_DEATH(
        {
            managed_world w;
            weft::shared_stack_group group;
            weft::fiber expects([&] { auto reply = w.m.expect<int>(5); },
                                {.name = "tenant", .on = w.l, .shared = &group});
            w.l.run();
        },
        "a reply is expected on a shared stack: fiber [0-9]+ \"tenant\"");
}

struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("no copy"); }
};

TEST(expected_reply, rethrows_what_constructing_the_value_threw) {
    managed_world w;
    auto reply = w.m.expect<throws_when_copied>(1);
    const throws_when_copied bad;
    EXPECT_TRUE(w.m.complete(1, bad));
    EXPECT_THROW(static_cast<void>(reply.wait(weft::never)), std::runtime_error);
}

// Signals that a copy is being made; the copy is complete only after another thread has run for a
// while.
struct slow_to_make {
    explicit slow_to_make(std::atomic<int>& step) : at(&step) {}
    slow_to_make(slow_to_make&&) = default;
    slow_to_make(const slow_to_make& other) : at(other.at) {
        *at = 1;
        while (*at != 2) std::this_thread::yield();
        for (int i = 0; i < 100; ++i) std::this_thread::yield();
    }
    std::atomic<int>* at = nullptr;
};

TEST(expected_reply, under_construction_at_the_deadline_is_not_late) {
    managed_world w;
    for (int i = 0; i < 20; ++i) {
        std::atomic<int> step{0};
        auto reply = w.m.expect<slow_to_make>(1);
        const slow_to_make made(step);
        std::thread completes([&] { EXPECT_TRUE(w.m.complete(1, made)); });
        while (step != 1) std::this_thread::yield();
        step = 2;
        const auto got = reply.wait(weft::steady_now());
        EXPECT_TRUE(got.has_value() && got->at == &step);
        completes.join();
    }
}

// The reply comes from another thread, at about the time at which it is too late.
TEST(expected_reply, is_either_taken_or_late) {
    weft::testing::loop_thread there;
    weft::task_manager<> m({.on = there.loop()});
    const int rounds = weft::testing::slow ? 300 : 3'000;
    std::atomic<std::uint64_t> at{0};
    std::atomic<int> given{0}, taken{0};
    const auto waits = m.spawn_with_handle([&] {
        for (int i = 0; i < rounds; ++i) {
            auto reply = m.expect<int>();
            at.store(reply.sequence());
            taken += reply.wait(weft::duration(i % 3 * 500'000)).has_value() ? 1 : 0;
        }
        at = ~std::uint64_t{0};
    });
    const auto completes = [&] {
        for (std::uint64_t n = at; n != ~std::uint64_t{0}; n = at)
            given += m.complete(n, 1) ? 1 : 0;
    };
    std::thread a(completes), b(completes);
    a.join(), b.join();
    EXPECT_EQ(waits->join().value(), weft::managed_status::done);
    EXPECT_EQ(given, taken);
}

TEST(expected_reply_death, refuses_a_kill_while_the_reply_is_copied) {
    managed_world w;
    auto reply = w.m.expect<weft::testing::stops_in_copy>(1);
    weft::testing::expect_no_kill_in_copy([&] {
        const weft::testing::stops_in_copy value;
        EXPECT_TRUE(w.m.complete(1, value));
    });
    EXPECT_TRUE(reply.is_ready());
}

}  // namespace
