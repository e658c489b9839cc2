#include "weft/future/shared_future.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/agents.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"

namespace {

using namespace future_tests;
using weft::shared_future;

TEST(shared_future, gives_every_copy_the_same_value_by_reference) {
    tracked::copies = 0;
    weft::loop l;
    promise<tracked> p(l);
    shared_future<tracked> s = p.get_future().share(), t = s;
    const tracked *a = nullptr, *b = nullptr;
    auto f = s.then([&](const tracked& x) { a = &x; });
    auto g = t.then(plain, [&](auto& x) { b = &x; });
    p.set_value(4);
    l.run();
    EXPECT_EQ(a, &s.get());
    EXPECT_EQ(b, &t.get());
    EXPECT_EQ(a->value, 4);
    auto later = s.then([](const tracked& x) { return x.value; });
    l.run();
    EXPECT_EQ(later.get(), 4);
    EXPECT_EQ(tracked::copies, 0);
}

TEST(shared_future, runs_continuations_in_order_of_registration) {
    weft::loop l;
    promise<> p(l);
    auto s = p.get_future().share();
    std::string order;
    for (char c : {'a', 'b', 'c'}) s.then([&order, c] { order += c; }).detach();
    p.set_value();
    l.run();
    EXPECT_EQ(order, "abc");
}

TEST(shared_future, delivers_a_failure_to_every_copy) {
    weft::loop l;
    promise<int> p(l), q(l);
    auto s = p.get_future().share();
    auto t = q.get_future().share();
    auto f = s.then([](int) { return 1; });
    p.set_exception(std::make_exception_ptr(std::runtime_error("no")));
    q = promise<int>(l);
    l.run();
    EXPECT_THROW(f.get(), std::runtime_error);
    EXPECT_THROW(s.get(), std::runtime_error);
    EXPECT_THROW(s.get(), std::runtime_error);
    EXPECT_THROW(t.get(), std::system_error);
}

TEST(shared_future, continues_when_one_dependent_is_stopped) {
    weft::loop l;
    promise<int> p(l);
    auto s = p.get_future().share();
    auto f = s.then([](int n) { return n; });
    auto g = s.then([](int n) { return n; });
    EXPECT_TRUE(f.request_stop());
    EXPECT_FALSE(p.stop_requested());
    p.set_value(3);
    l.run();
    EXPECT_EQ(g.get(), 3);
    EXPECT_EQ(f.error(), std::errc::operation_canceled);

    promise<int> q(l);
    auto t = q.get_future().share();
    EXPECT_TRUE(t.request_stop());
    l.run();
    EXPECT_TRUE(q.stop_requested());
    EXPECT_THROW(t.get(), weft::stopped);
}

using weft::testing::kind;
class shared_future_among : public weft::testing::among {};
TEST_P(shared_future_among, wakes_all_waiters) {
    promise<int> p;
    auto s = p.get_future().share();
    std::atomic<int> sum{0};
    const auto waits = [&](auto wait) -> weft::task<> { sum += co_await wait(s.async_get()); };
    const auto [a, b, where] = GetParam();
    weft::testing::agents all(where);
    for (int i = 0; i < 3; ++i) all.add(a, waits);
    all.add(b, [&](auto wait) -> weft::task<> {
        co_await wait(weft::sleep_for(1ms));
        p.set_value(2);
    });
    weft::detail::this_thread_host();
    std::thread runs([&] { all.run(); });
    s.wait();  // its executor is this thread's
    runs.join();
    EXPECT_EQ(sum, 6);
}
WEFT_INSTANTIATE_AMONG(shared_future_among);

}  // namespace
