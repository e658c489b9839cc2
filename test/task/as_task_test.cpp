#include "weft/task/detail/as_task.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <system_error>
#include <variant>

#include "test/task/agents.hpp"
#include "test/task/on_loop.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/parallel/fork_join.hpp"
#include "weft/poll/poll_task.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/barrier.hpp"
#include "weft/sync/broadcast.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/once.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/when_all.hpp"
#include "weft/task/when_any.hpp"
#include "weft/task/with_timeout.hpp"

namespace {

using namespace on_loop;
using weft::detail::as_task;
using weft::detail::kept_t;
using weft::detail::task_result_t;

static_assert(std::is_same_v<task_result_t<task<int&>>, int&>);
static_assert(std::is_same_v<task_result_t<weft::sleep_operation>, void>);
static_assert(std::is_same_v<task_result_t<declining&>, int>);
static_assert(std::is_same_v<kept_t<void>, std::monostate>);
static_assert(std::is_same_v<kept_t<int&>, std::reference_wrapper<int>>);

TEST(as_task, returns_a_task_unchanged) {
    task<int> t = number_in(1ms, 1);
    task<int> same = as_task(std::move(t));
    EXPECT_FALSE(t);
    EXPECT_TRUE(same);
    EXPECT_EQ(run(as_task(same)), 1);
    EXPECT_FALSE(same);
}

TEST(as_task, stores_a_temporary_and_refers_to_an_lvalue) {
    declining named{4};
    task<int> t = as_task(named);
    named.value = 5;
    EXPECT_EQ(run(std::move(t)), 5);
    EXPECT_EQ(run(as_task(declining{6})), 6);
}

// Awaited in place, these are never copied, and could not be.
struct immovable_awaiter {
    int uses = 0;

    immovable_awaiter() = default;
    immovable_awaiter(const immovable_awaiter&) = delete;
    bool await_ready() {
        ++uses;
        return true;
    }
    void await_suspend(std::coroutine_handle<>) {}
    int await_resume() const { return uses; }
};
struct holder_of_awaiter {
    immovable_awaiter held;
    immovable_awaiter& operator co_await() { return held; }
};
template <class A>
task<> await_in_each_way() {
    A a;
    EXPECT_EQ(co_await as_task(a), 1);
    EXPECT_EQ(std::get<0>(co_await weft::when_all(a)), 2);
    const auto first = co_await weft::when_any(a);
    EXPECT_EQ(std::get<0>(first.value), 3);
    const auto in_time = co_await weft::with_timeout(a, 1s);
    EXPECT_EQ(in_time.value(), 4);
    EXPECT_EQ(std::get<0>(co_await weft::fork_join(a)), 5);
}
TEST(as_task, awaits_an_lvalue_awaiter_without_copying_it) {
    run(await_in_each_way<immovable_awaiter>());
    run(await_in_each_way<holder_of_awaiter>());
    holder_of_awaiter held;
    EXPECT_EQ(weft::sync_wait(held), 1);
    EXPECT_EQ(weft::sync_wait(weft::poll_task(held)), 2);
}

// Each operation may be moved until it is awaited, so that it can be passed on.
TEST(as_task, takes_operations_of_each_kind) {
    weft::mutex mutex;
    weft::shared_mutex shared;
    weft::auto_reset_event event;
    weft::manual_reset_event is_set(true);
    weft::once_flag once;
    weft::barrier<> barrier(1);
    weft::channel<std::unique_ptr<int>> items(1);
    weft::broadcast<int> news(1);
    weft::broadcast<int>::receiver receiver(news);
    weft::event_source<int> source;
    const auto body = [&]() -> task<> {
        co_await as_task(mutex.async_lock());
        mutex.unlock();
        EXPECT_TRUE(co_await as_task(mutex.async_lock(weft::now() + 1h)));
        mutex.unlock();
        co_await as_task(shared.async_lock());
        shared.unlock();
        co_await as_task(shared.async_lock_shared());
        shared.unlock_shared();
        event.set();
        co_await as_task(event.async_wait());
        co_await as_task(is_set.async_wait());
        EXPECT_TRUE(co_await as_task(once.async_acquire()));
        once.release(true);
        co_await as_task(barrier.async_arrive_and_wait());
        EXPECT_TRUE(co_await as_task(items.async_send(std::make_unique<int>(4))));
        auto item = co_await as_task(items.async_recv());
        EXPECT_EQ(**item, 4);
        EXPECT_TRUE(news.send(5));
        EXPECT_EQ(*co_await as_task(receiver.async_recv()), 5);
        source.set(6);
        EXPECT_EQ(co_await as_task(source.latest()), 6);
        auto fiber = weft::spawn([] { return 7; });
        EXPECT_EQ(co_await as_task(fiber.async_get()), 7);
    };
    run(body());
}

// The use that the headers of when_all and with_timeout name first.
TEST(as_task, lets_a_combinator_await_a_channel_directly) {
    weft::channel<int> c;
    const auto body = [&]() -> task<> {
        weft::fiber sends([&] { EXPECT_TRUE(c.send(1)); });
        auto [price, item] = co_await weft::when_all(number_in(1ms, 9), c.async_recv());
        EXPECT_EQ(price, 9);
        EXPECT_EQ(item.value(), 1);
        auto late = co_await weft::with_timeout(c.async_recv(), 1ms);
        EXPECT_EQ(late.error(), std::errc::timed_out);
        auto all = weft::when_all(c.async_recv(), c.async_send(2));  // before it is awaited
        auto [received, sent] = co_await all;
        EXPECT_EQ(received.value(), 2);
        EXPECT_TRUE(sent);
        co_await sends.async_join();
    };
    run(body());
}

TEST(as_task, takes_awaitables_of_each_kind) {
    event e;
    task<> member = as_task(member_event{&e});
    member.start();
    e.fire();
    EXPECT_TRUE(member.done());
    task<> free = as_task(free_event{&e});
    free.start();
    e.fire();
    EXPECT_TRUE(free.done());
}

}  // namespace
