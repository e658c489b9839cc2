#include "weft/sync/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "test/support/agents.hpp"
#include "test/support/manual_executor.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/oneshot.hpp"
#include "weft/sync/unbounded_channel.hpp"

using namespace std::chrono_literals;
using weft::on_closed;
using weft::on_recv;
using weft::on_send;
using weft::on_stop;
using weft::otherwise;

namespace {

class select_among : public weft::testing::among {};

TEST_P(select_among, each_item_of_two_channels_arrives_once_and_in_order) {
    weft::channel<int> a, b(2);
    std::vector<int> from_a, from_b;
    run(
        [&](auto wait) -> weft::task<> {
            int next_a = 0, next_b = 0;
            while (next_a < 100 || next_b < 100) {
                if (next_a == 100) {
                    EXPECT_TRUE(co_await wait(b.async_send(next_b++)));
                } else if (next_b == 100) {
                    EXPECT_TRUE(co_await wait(a.async_send(next_a++)));
                } else {
                    co_await wait(weft::async_select(on_send(a, next_a, [&] { ++next_a; }),
                                                     on_send(b, next_b, [&] { ++next_b; })));
                }
            }
            a.close();
            b.close();
        },
        [&](auto wait) -> weft::task<> {
            bool a_open = true, b_open = true;
            while (a_open || b_open) {
                if (a_open && b_open) {
                    co_await wait(
                        weft::async_select(on_recv(a, [&](int i) { from_a.push_back(i); }),
                                           on_recv(b, [&](int i) { from_b.push_back(i); }),
                                           on_closed(a, [&] { a_open = false; }),
                                           on_closed(b, [&] { b_open = false; })));
                } else {
                    auto& rest = a_open ? a : b;
                    auto item = co_await wait(rest.async_recv());
                    if (!item) break;
                    (a_open ? from_a : from_b).push_back(*item);
                }
            }
        });
    ASSERT_EQ(from_a.size(), 100u);
    ASSERT_EQ(from_b.size(), 100u);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(from_a[static_cast<std::size_t>(i)], i);
        EXPECT_EQ(from_b[static_cast<std::size_t>(i)], i);
    }
}

TEST_P(select_among, both_sides_may_select) {
    weft::channel<int> there, back;
    std::atomic<int> rounds{0};
    auto plays = [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 200; ++i) {
            const auto which = co_await wait(weft::async_select(
                on_send(there, i, [&] { ++rounds; }), on_recv(there, [&](int) { ++rounds; }),
                on_recv(back, [](int) { ADD_FAILURE() << "nobody sends there"; })));
            EXPECT_LT(which, 2u);
        }
    };
    run(plays, plays);
    EXPECT_EQ(rounds, 400);
}

TEST_P(select_among, a_timeout_case_ends_it) {
    weft::channel<int> silent;
    run_many(2, [&](auto wait) -> weft::task<> {
        const auto until = weft::after(weft::now(), 2ms);
        bool late = false;
        const auto which =
            co_await wait(weft::async_select(on_recv(silent, [](int) { ADD_FAILURE(); }),
                                             weft::on_timeout(2ms, [&] { late = true; })));
        EXPECT_EQ(which, 1u);
        EXPECT_TRUE(late);
        EXPECT_GE(weft::now(), until);
    });
    EXPECT_EQ(silent.try_send(1).error(), std::errc::resource_unavailable_try_again)
        << "nobody stands in line any more";
}

WEFT_INSTANTIATE_AMONG(select_among);

// -- alone ------------------------------------------------------------------------------------

TEST(select, otherwise_does_not_wait) {
    weft::channel<int> c(1);
    int got = 0;
    EXPECT_EQ(weft::select(on_recv(c, [&](int i) { got = i; }), otherwise([] {})), 1u);
    EXPECT_EQ(weft::select(on_send(c, 7), otherwise([] {})), 0u);
    EXPECT_EQ(weft::select(on_send(c, 8), otherwise([] {})), 1u) << "it is full";
    EXPECT_EQ(weft::select(on_recv(c, [&](int i) { got = i; }), otherwise([] {})), 0u);
    EXPECT_EQ(got, 7);
}

TEST(select, drains_a_closed_channel_before_reporting_it) {
    weft::channel<int> c(4);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(c.try_send(i));
    c.close();
    std::vector<int> got;
    bool run = true;
    while (run)
        weft::select(on_recv(c, [&](int i) { got.push_back(i); }),
                     on_closed(c, [&] { run = false; }),
                     on_send(c, 9, [] { ADD_FAILURE() << "sent to a closed channel"; }));
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(weft::select(on_recv(c, [](int) {}), on_send(c, 1)), weft::select_none);
    EXPECT_EQ(weft::select(on_recv(c, [](int) {}), otherwise([] {})), 1u);
    EXPECT_EQ(weft::select(on_recv(c, [](int) {}), weft::on_timeout(1ms, [] {})), 1u);
}

TEST(select, a_close_wakes_it) {
    weft::loop l;
    weft::channel<int> a, b, c(1);
    ASSERT_TRUE(c.try_send(0));
    std::vector<std::size_t> which;
    auto ignore = [](int) {};
    std::vector<weft::fiber> fibers;
    fibers.emplace_back(
        [&] { which.push_back(weft::select(on_recv(a, ignore), on_closed(a, [] {}))); },
        weft::fiber_options{.on = l});
    fibers.emplace_back(
        [&] { which.push_back(weft::select(on_recv(a, ignore), on_recv(b, ignore))); },
        weft::fiber_options{.on = l});
    fibers.emplace_back([&] { which.push_back(weft::select(on_send(c, 1), on_closed(c, [] {}))); },
                        weft::fiber_options{.on = l});
    l.run_until_idle();
    EXPECT_TRUE(which.empty());
    a.close();
    l.run_until_idle();
    EXPECT_EQ(which, (std::vector<std::size_t>{1})) << "the other has b to hope for";
    b.close();
    l.run_until_idle();
    EXPECT_EQ(which, (std::vector<std::size_t>{1, weft::select_none}));
    c.close();
    l.run_until_idle();
    EXPECT_EQ(which.size(), 2u) << "it holds an item still";
    EXPECT_EQ(*c.try_recv(), 0);
    l.run();
    EXPECT_EQ(which, (std::vector<std::size_t>{1, weft::select_none, 1}));
    for (auto& f : fibers) f.join();
}

TEST(select, a_stop_is_a_case_or_throws) {
    weft::testing::virtual_loop l;
    weft::channel<int> c;
    bool notified = false;
    weft::fiber asks(
        [&] {
            EXPECT_EQ(weft::select(on_recv(c, [](int) {}), on_stop([&] { notified = true; })), 1u);
        },
        {.on = l});
    weft::fiber throws([&] { weft::select(on_recv(c, [](int) {})); }, {.on = l});
    weft::fiber stops(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            asks.request_stop();
            throws.request_stop();
        },
        {.on = l});
    l.run();
    EXPECT_FALSE(asks.join().is_stopped());
    EXPECT_TRUE(throws.join().is_stopped());
    EXPECT_TRUE(notified);
    stops.join();
    EXPECT_FALSE(c.try_send(1)) << "nobody stands in line any more";
}

TEST(select, propagates_an_exception_of_its_case) {
    weft::channel<int> c(1);
    EXPECT_TRUE(c.try_send(1));
    EXPECT_THROW(weft::select(on_recv(c, [](int i) { throw i; })), int);
    EXPECT_EQ(c.size(), 0u);
}

TEST(select, works_on_every_channel_type_and_with_move_only_items) {
    weft::oneshot<std::unique_ptr<int>> answer;
    weft::unbounded_channel<std::string> events;
    weft::channel<std::unique_ptr<int>> out(1);
    EXPECT_TRUE(answer.send(std::make_unique<int>(1)));
    int sum = 0;
    EXPECT_EQ(weft::select(on_recv(answer, [&](std::unique_ptr<int> p) { sum += *p; }),
                           on_recv(events, [](const std::string&) { ADD_FAILURE(); })),
              0u);
    EXPECT_TRUE(events.send("x"));
    EXPECT_EQ(weft::select(on_recv(answer, [](std::unique_ptr<int>) { ADD_FAILURE(); }),
                           on_recv(events, [&](std::string s) { sum += int(s.size()); })),
              1u);
    EXPECT_EQ(weft::select(on_send(out, std::make_unique<int>(5))), 0u);
    sum += **out.try_recv();
    EXPECT_EQ(sum, 7);
}

TEST(select, has_left_all_channels_when_its_case_runs) {
    weft::loop l;
    weft::channel<int> a;
    auto b = std::make_unique<weft::channel<int>>();
    weft::fiber f(
        [&] {
            weft::select(on_recv(a, [&](int) { b.reset(); }),
                         on_recv(*b, [](int) { ADD_FAILURE(); }));
        },
        {.on = l});
    l.run_until_idle();
    EXPECT_TRUE(a.try_send(1));
    l.run();
    EXPECT_EQ(b, nullptr);
    f.join();
}

TEST(select, leaves_all_channels_if_its_frame_is_destroyed_unresumed) {
    weft::loop l;
    weft::channel<int> a, b;
    const auto body = [&]() -> weft::task<> {
        co_await weft::async_select(on_recv(a, [](int) {}), on_recv(b, [](int) {}));
    };
    auto t = std::make_unique<weft::task<>>(body());
    l.post([&] {
        t->start();
        EXPECT_TRUE(a.try_send(1));
        t.reset();
        EXPECT_FALSE(b.try_send(2)) << "nobody waits there";
    });
    l.run_until_idle();
}

// Runs what is posted to it within the post.
struct at_once_executor final : weft::executor {
    void post(weft::runnable& r) noexcept override {
        weft::detail::run_turn(*this, r.handle, r.of);
    }
    void defer(std::coroutine_handle<> h, weft::flow* of) noexcept override {
        weft::detail::run_turn(*this, h, of);
    }
    void cancel_post(weft::runnable&) noexcept override {}
    void arm(weft::timer_node&) noexcept override {}
    void disarm(weft::timer_node&) noexcept override {}
    weft::time_point now() const noexcept override { return weft::steady_now(); }
    void register_flow(weft::flow&) noexcept override {}
    void deregister_flow(weft::flow&) noexcept override {}
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }
};
// The receiver of the item runs before the select continues, and by then the memory of the channel
// may be another object's.
TEST(select, does_not_touch_the_channel_after_an_immediate_send) {
    using ints = weft::channel<int>;
    at_once_executor on;
    alignas(ints) std::array<std::byte, sizeof(ints)> room;
    ints& c = *new (room.data()) ints;
    int got = 0;
    const auto receives = [&]() -> weft::testing::plain_coroutine {
        got = (co_await c.async_recv()).value();
        std::destroy_at(&c);
        room.fill(std::byte{0xff});
    };
    weft::testing::plain_coroutine receiver = receives();
    receiver.start(on);
    EXPECT_EQ(weft::select(on_send(c, 4, [] {})), 0u);
    EXPECT_EQ(got, 4);
    EXPECT_EQ(std::ranges::count(room, std::byte{0xff}), std::ssize(room));
}

TEST(select, has_up_to_64_cases_of_channels) {
    std::array<weft::channel<int>, 64> all;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        weft::loop l;
        weft::fiber f(
            [&] {
                for (const std::size_t sent : {0u, 31u, 63u}) {
                    weft::fiber sender([&] { EXPECT_TRUE(all[sent].send(7)); });
                    EXPECT_EQ(
                        weft::select(weft::on_recv(all[I], [](int n) { EXPECT_EQ(n, 7); })...),
                        sent);
                    sender.join();
                }
            },
            {.on = l});
        l.run();
    }(std::make_index_sequence<64>());
}

// With several ready, each is taken about as often as any other, whatever its position.
TEST(select, is_fair) {
    weft::channel<int> a(1), b(1), c(1), never_ready;
    std::array<int, 4> count{};
    auto nothing = [](int) {};
    for (int i = 0; i < 3000; ++i) {
        static_cast<void>(a.try_send(0)), static_cast<void>(b.try_send(0));
        static_cast<void>(c.try_send(0));
        ++count[weft::select(on_recv(a, nothing), on_recv(never_ready, nothing),
                             on_recv(b, nothing), on_recv(c, nothing))];
    }
    EXPECT_EQ(count[1], 0);
    for (const std::size_t i : {0u, 2u, 3u}) {
        EXPECT_GT(count[i], 850);
        EXPECT_LT(count[i], 1150);
    }
}

}  // namespace
