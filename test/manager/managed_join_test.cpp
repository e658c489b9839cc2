#include "weft/manager/managed_join.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "test/manager/managed.hpp"
#include "test/support/loop_thread.hpp"
#include "test/support/outside.hpp"
#include "weft/poll/poll_task.hpp"
#include "weft/sync/channel.hpp"
#include "weft/wait/timeout_scope.hpp"

using namespace std::chrono_literals;

namespace {

enum class shop_error { out_of_stock, no_answer };

}  // namespace

template <>
struct weft::end_error<shop_error> {
    static shop_error of(std::error_code) noexcept { return shop_error::no_answer; }
};

namespace {

using weft::managed_status;
using weft::manager_errc;
using weft::testing::managed_world;

class managed_joins : public weft::testing::of_both_kinds {};
WEFT_INSTANTIATE_OF_BOTH_KINDS(managed_joins);

TEST_P(managed_joins, report_how_the_task_ended) {
    const auto done = begin([] { return weft::sleep_for(1s); });
    const auto cancelled = begin([] { return weft::sleep_for(1h); });
    const auto late = begin([] { return weft::sleep_for(1h); }, [] {}, {.timeout = 1s});
    const auto killed = begin([] { return weft::sleep_for(1h); });
    weft::fiber joins(
        [&] {
            w.m.cancel(cancelled.id());
            EXPECT_EQ(*w.m.join(cancelled.id()), managed_status::cancelled);
            EXPECT_EQ(*w.m.join(done.id()), managed_status::done);
            EXPECT_EQ(late.join<void>().error(), std::errc::timed_out);
            weft::this_fiber::yield();
            w.m.kill(killed.id());
            EXPECT_EQ(killed.join<void>().error(), manager_errc::killed);
        },
        {.on = w.l});
    w.l.run();
    joins.join();
    EXPECT_EQ(cancelled.join<void>().error(), std::errc::operation_canceled);
    EXPECT_EQ(w.m.join(done.id()).error(), manager_errc::no_such_task);
    EXPECT_EQ(w.m.join<int>(done.id()).error(), manager_errc::no_such_task);
}

TEST(managed_join, returns_the_value_once) {
    managed_world w;
    const auto h = w.m.spawn_with_handle([] { return std::string("value"); });
    w.l.run();
    EXPECT_EQ(h->join<int>().error(), manager_errc::type_mismatch);
    EXPECT_EQ(*h->join<std::string>(), "value");
    EXPECT_EQ(h->join<std::string>().error(), manager_errc::value_already_taken);
    EXPECT_EQ(*h->join(), managed_status::done);
}

TEST(managed_join, reports_the_end_as_a_user_defined_error) {
    using answer = weft::result<int, shop_error>;
    managed_world w;
    const auto sold = w.m.spawn_with_handle([]() -> answer { return 5; });
    const auto out =
        w.m.spawn_with_handle([]() -> answer { return weft::failure(shop_error::out_of_stock); });
    const auto dead = w.m.spawn_with_handle([]() -> weft::task<answer> {
        co_await weft::sleep_for(1h);
        co_return 1;
    });
    w.settle();
    w.m.kill(dead->id());
    w.l.run();
    const answer a = sold->join<answer>();
    EXPECT_EQ(*a, 5);
    EXPECT_EQ(out->join<answer>().error(), shop_error::out_of_stock);
    EXPECT_EQ(dead->join<answer>().error(), shop_error::no_answer);
    EXPECT_EQ(w.m.join<answer>(dead->id()).error(), shop_error::no_answer) << "no such task";
}

TEST(managed_join, of_itself_is_refused) {
    managed_world w;
    const auto fiber = w.m.spawn([&] {
        EXPECT_EQ(w.m.join(weft::this_managed::id()).error(),
                  std::errc::resource_deadlock_would_occur);
    });
    const auto coroutine = w.m.spawn([&]() -> weft::task<> {
        const auto how = co_await w.m.async_join<void>(weft::this_managed::id());
        EXPECT_EQ(how.error(), std::errc::resource_deadlock_would_occur);
    });
    ASSERT_TRUE(fiber && coroutine);
    w.l.run();
    EXPECT_EQ(w.m.live_count(), 0u);
}

TEST(managed_join, that_would_close_a_cycle_is_refused) {
    managed_world w;
    std::uint64_t ids[3];
    int refused = 0;
    for (int i = 0; i < 3; ++i)
        ids[i] = *w.m.spawn([&, i] {
            weft::this_fiber::sleep_for(std::chrono::seconds(i + 1));
            const auto how = w.m.join(ids[(i + 1) % 3]);
            if (how) return;
            EXPECT_EQ(how.error(), std::errc::resource_deadlock_would_occur);
            EXPECT_EQ(i, 2) << "the last";
            ++refused;
        });
    w.l.run();
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(w.m.live_count(), 0u) << "the others have ended";
}

// One task abandons its join of another, in `leave(manager, id of the other)`. Returns whether the
// other can join it afterwards.
template <class F>
bool is_joined_by_what_it_left(F leave) {
    managed_world w;
    std::uint64_t ids[2];
    bool joined = false;
    ids[0] = *w.m.spawn([&] {
        leave(w.m, ids[1]);
        weft::this_fiber::sleep_for(5s);
    });
    ids[1] = *w.m.spawn([&] {
        weft::this_fiber::sleep_for(2s);
        joined = w.m.join(ids[0]).has_value();
    });
    w.l.run();
    return joined;
}

TEST(managed_join, that_timed_out_is_not_part_of_a_cycle) {
    EXPECT_TRUE(is_joined_by_what_it_left([](auto& m, std::uint64_t other) {
        try {
            const weft::timeout_scope limit(1s);
            static_cast<void>(m.join(other));
        } catch (const weft::stopped&) {
        }
    }));
}

// A join that is cancelled between two polls, and not where it is awaited.
TEST(managed_join, that_was_destroyed_while_pending_is_not_part_of_a_cycle) {
    EXPECT_TRUE(is_joined_by_what_it_left([](auto& m, std::uint64_t other) {
        weft::poll_task looked_at(m.async_join(other));
        EXPECT_FALSE(looked_at.poll());
    }));
}

TEST(managed_join, counts_as_a_deadlock_only_within_its_own_loop) {
    weft::task_manager<> m;
    weft::loop elsewhere;
    const auto there =
        m.spawn_with_handle([] { weft::this_fiber::sleep_for(1h); }, {.on = elsewhere});
    elsewhere.run_until_idle();
    EXPECT_TRUE(weft::testing::waits_for_outside([&] { static_cast<void>(there->join()); }));
    weft::channel<int> c;
    EXPECT_FALSE(weft::testing::waits_for_outside([&] {
        static_cast<void>(m.spawn_with_handle([&] { static_cast<void>(c.recv()); })->join());
    }));
    m.kill(there->id());
    elsewhere.run_until_idle();
}

TEST(managed_join, ends_when_its_waiter_is_stopped_or_killed) {
    managed_world w;
    const auto lives = w.m.spawn_with_handle([] { weft::this_fiber::sleep_for(10s); });
    const auto body = [&] { static_cast<void>(lives->join()); };
    const auto cancelled = w.m.spawn_with_handle(body), killed = w.m.spawn_with_handle(body);
    w.settle();
    w.m.cancel(cancelled->id());
    w.m.kill(killed->id());
    w.settle();
    EXPECT_TRUE(cancelled->over());
    EXPECT_TRUE(killed->over());
    EXPECT_FALSE(lives->over());
    w.l.run();
}

TEST(managed_join, waits_on_a_thread_for_a_task_of_another_thread) {
    weft::testing::loop_thread there;
    weft::task_manager<> m({.on = there.loop()});
    for (int i = 0; i < 50; ++i) {
        const auto a = m.spawn_with_handle([i] { return i; });
        const auto b = m.spawn_with_handle([i]() -> weft::task<int> { co_return i; });
        EXPECT_EQ(*a->join<int>(), i);
        EXPECT_EQ(*b->join<int>(), i);
    }
}

}  // namespace
