#include "weft/io/resolver.hpp"

#include <gtest/gtest.h>
#include <netdb.h>

#include <mutex>
#include <string>
#include <vector>

#include "test/io/drivers.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace std::chrono_literals;
using weft::endpoint;
using weft::fiber;
using weft::ip_address;
using weft::resolver;

template <class F>
void in_a_fiber(F f) {
    weft::loop l;
    fiber main(std::move(f), {.on = &l});
    l.run();
}

TEST(resolver, an_address_is_its_own_answer) {
    resolver r;
    EXPECT_EQ(r.resolve("127.0.0.1", 80).value(),
              std::vector{endpoint(ip_address::loopback(), 80)});
    EXPECT_EQ(r.resolve("::1", 80).value(), std::vector{endpoint(ip_address::loopback_v6(), 80)});
    EXPECT_EQ(r.call_count(), 0u);
}

TEST(resolver, knows_this_machine) {
    in_a_fiber([] {
        resolver r;
        const std::vector<endpoint> all = r.resolve("localhost", 7000).value();
        ASSERT_FALSE(all.empty());
        for (const endpoint& e : all) {
            EXPECT_TRUE(e.address().is_loopback());
            EXPECT_EQ(e.port(), 7000);
        }
    });
}

TEST(resolver, keeps_an_answer_for_a_while) {
    in_a_fiber([] {
        resolver r({.keep = 1h});
        EXPECT_TRUE(r.resolve("localhost", 1));
        EXPECT_TRUE(r.resolve("localhost", 2));
        EXPECT_EQ(r.call_count(), 1u);
        r.forget_all();
        EXPECT_TRUE(r.resolve("localhost", 3));
        EXPECT_EQ(r.call_count(), 2u);
        resolver none({.keep = 0s});
        EXPECT_TRUE(none.resolve("localhost", 1));
        EXPECT_TRUE(none.resolve("localhost", 1));
        EXPECT_EQ(none.call_count(), 2u);
    });
}

TEST(resolver, asks_once_for_all_who_ask_at_once) {
    in_a_fiber([] {
        resolver r;
        std::vector<fiber> all;
        int answers = 0;
        for (int i = 0; i < 20; ++i)
            all.emplace_back([&] { answers += r.resolve("localhost", 1).has_value(); });
        for (fiber& f : all) f.join();
        EXPECT_EQ(answers, 20);
        EXPECT_EQ(r.call_count(), 1u);
    });
}

// A name that no net is asked for.
TEST(resolver, says_why_there_is_no_answer) {
    in_a_fiber([] {
        resolver r;
        const auto none = r.resolve("bad name", 1);
        ASSERT_FALSE(none);
        EXPECT_EQ(&none.error().category(), &weft::resolver_category());
        EXPECT_EQ(none.error().message(), ::gai_strerror(none.error().value()));
        EXPECT_FALSE(r.resolve("bad name", 1));
        EXPECT_EQ(r.call_count(), 2u) << "a failure is not kept";
    });
}

TEST(resolver, serves_a_task) {
    resolver r;
    auto t = [&]() -> weft::task<std::size_t> {
        const auto all = co_await r.async_resolve("localhost", 1);
        co_return all ? all->size() : 0;
    };
    EXPECT_GE(weft::sync_wait(t()), 1u);
}

TEST(resolver, who_is_stopped_does_not_wait_for_the_answer) {
    weft::blocking_pool busy({.max_threads = 1});
    std::mutex held;
    held.lock();
    ASSERT_TRUE(busy.post([&] { const std::lock_guard until_released(held); }));
    resolver r({.pool = &busy, .by = weft::resolve_by::getaddrinfo});
    in_a_fiber([&] {
        std::error_code how;
        fiber f([&] { how = r.resolve("localhost", 1).error(); });
        weft::this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
    });
    held.unlock();
    EXPECT_TRUE(r.resolve("localhost", 1));
}

TEST(resolver, keeps_no_more_names_than_it_may) {
    in_a_fiber([] {
        resolver r({.keep = 1h, .max_names = 1});
        EXPECT_TRUE(r.resolve("localhost", 1));
        static_cast<void>(r.resolve("bad name", 1));
        EXPECT_TRUE(r.resolve("localhost", 1));
        EXPECT_EQ(r.call_count(), 3u);
    });
}

}  // namespace
