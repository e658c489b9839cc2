#include "weft/sync/channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"

using namespace std::chrono_literals;

namespace {

constexpr auto would_wait = std::errc::resource_unavailable_try_again;

class channel_among : public weft::testing::among {
protected:
    void carries_in_order(std::size_t capacity) {
        weft::channel<std::unique_ptr<int>> c(capacity);
        std::vector<int> got;
        constexpr int count = 300;
        run(
            [&](auto wait) -> weft::task<> {
                for (int i = 0; i < count; ++i) {
                    auto sent = co_await wait(c.async_send(std::make_unique<int>(i)));
                    EXPECT_TRUE(sent);
                }
                c.close();
                auto refused = co_await wait(c.async_send(nullptr));
                EXPECT_EQ(refused.error(), weft::errc::closed);
            },
            [&](auto wait) -> weft::task<> {
                for (;;) {
                    auto item = co_await wait(c.async_recv());
                    if (!item) {
                        EXPECT_EQ(item.error(), weft::errc::closed);
                        break;
                    }
                    got.push_back(**item);
                }
            });
        std::vector<int> expected(count);
        std::iota(expected.begin(), expected.end(), 0);
        EXPECT_EQ(got, expected);
    }
};

TEST_P(channel_among, preserves_order_without_a_buffer) { carries_in_order(0); }
TEST_P(channel_among, preserves_order_with_a_capacity_of_one) { carries_in_order(1); }
TEST_P(channel_among, preserves_order_with_a_capacity_of_many) { carries_in_order(100); }

TEST_P(channel_among, each_item_goes_to_one_receiver) {
    weft::channel<int> c(3);
    std::atomic<int> sum{0}, senders{2}, turn{0};
    run_many(6, [&](auto wait) -> weft::task<> {
        if (turn++ < 2) {  // two of them send
            for (int i = 1; i <= 100; ++i) EXPECT_TRUE(co_await wait(c.async_send(i)));
            if (--senders == 0) c.close();
            co_return;
        }
        for (;;) {
            auto item = co_await wait(c.async_recv());
            if (!item) break;
            sum += *item;
        }
    });
    EXPECT_EQ(sum, 2 * 5050);
}

TEST_P(channel_among, a_deadline_ends_a_wait) {
    weft::channel<int> empty, full(1);
    ASSERT_TRUE(full.try_send(1));
    run(
        [&](auto wait) -> weft::task<> {
            const auto until = weft::after(weft::now(), 2ms);
            auto item = co_await wait(empty.async_recv(until));
            EXPECT_EQ(item.error(), std::errc::timed_out);
            EXPECT_GE(weft::now(), until);
        },
        [&](auto wait) -> weft::task<> {
            const auto until = weft::after(weft::now(), 2ms);
            auto sent = co_await wait(full.async_send(2, until));
            EXPECT_EQ(sent.error(), std::errc::timed_out);
            EXPECT_GE(weft::now(), until);
        });
    EXPECT_EQ(*full.try_recv(), 1);
    EXPECT_EQ(full.try_recv().error(), would_wait) << "the second was not sent";
}

WEFT_INSTANTIATE_AMONG(channel_among);

// -- alone ------------------------------------------------------------------------------------

TEST(channel, refuses_when_full_and_leaves_the_item_to_its_owner) {
    weft::channel<std::unique_ptr<int>> c(2);
    EXPECT_EQ(c.capacity(), 2u);
    EXPECT_TRUE(c.try_send(std::make_unique<int>(1)));
    EXPECT_TRUE(c.try_send(std::make_unique<int>(2)));
    auto third = std::make_unique<int>(3);
    EXPECT_EQ(c.try_send(std::move(third)).error(), would_wait);
    ASSERT_NE(third, nullptr);
    EXPECT_EQ(c.send(std::move(third), 0s).error(), std::errc::timed_out);
    EXPECT_EQ(c.size(), 2u);
    EXPECT_EQ(**c.try_recv(), 1);
    EXPECT_EQ(**c.recv(), 2);
    EXPECT_EQ(c.try_recv().error(), would_wait);
    EXPECT_EQ(c.recv(0s).error(), std::errc::timed_out);
}

TEST(channel, items_can_be_received_after_close) {
    weft::channel<std::string> c(4);
    EXPECT_TRUE(c.send("a"));
    EXPECT_TRUE(c.send("b"));
    EXPECT_TRUE(c.close());
    EXPECT_FALSE(c.close()) << "the second time";
    EXPECT_TRUE(c.is_closed());
    EXPECT_EQ(c.send("c").error(), weft::errc::closed);
    EXPECT_EQ(c.try_send("c").error(), weft::errc::closed);
    EXPECT_EQ(*c.recv(), "a");
    EXPECT_EQ(*c.try_recv(), "b");
    EXPECT_EQ(c.recv().error(), weft::errc::closed);
    EXPECT_EQ(c.try_recv().error(), weft::errc::closed);
}

TEST(channel, close_wakes_all_waiters) {
    weft::loop l;
    weft::channel<int> empty, full(1);
    ASSERT_TRUE(full.try_send(1));
    int notified = 0;
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 3; ++i) {
        fibers.emplace_back([&] { notified += empty.recv().error() == weft::errc::closed; },
                            weft::fiber_options{.on = l});
        fibers.emplace_back([&] { notified += full.send(2).error() == weft::errc::closed; },
                            weft::fiber_options{.on = l});
    }
    l.run_until_idle();
    empty.close();
    full.close();
    l.run();
    for (auto& f : fibers) f.join();
    EXPECT_EQ(notified, 6);
    EXPECT_EQ(*full.recv(), 1);
    EXPECT_EQ(full.recv().error(), weft::errc::closed);
}

TEST(channel, can_be_iterated_until_the_end) {
    weft::channel<std::unique_ptr<int>> c(8);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(c.try_send(std::make_unique<int>(i)));
    c.close();
    std::vector<int> got;
    for (auto& p : c) got.push_back(*p);
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(channel, a_stop_ends_iteration_by_an_exception) {
    weft::testing::virtual_loop l;
    weft::channel<int> c;
    weft::fiber f(
        [&] {
            for (int i : c) ADD_FAILURE() << i;
            ADD_FAILURE() << "went on";
        },
        {.on = l});
    weft::fiber stops([&] { weft::this_fiber::sleep_for(1ms), f.request_stop(); }, {.on = l});
    l.run();
    EXPECT_TRUE(f.join().is_stopped());
    stops.join();
}

struct counting {
    static inline int copies = 0, moves = 0, living = 0;
    counting() noexcept { ++living; }
    counting(const counting&) noexcept { ++copies, ++living; }
    counting(counting&&) noexcept { ++moves, ++living; }
    counting& operator=(const counting&) = delete;
    ~counting() { --living; }
};

TEST(channel, never_copies_and_destroys_remaining_items) {
    counting::copies = 0;
    {
        weft::channel<counting> c(3);
        EXPECT_TRUE(c.send(counting()));
        EXPECT_TRUE(c.send(counting()));
        EXPECT_TRUE(c.recv());
        EXPECT_TRUE(c.send(counting()));
        EXPECT_TRUE(c.send(counting()));
        EXPECT_EQ(c.send(counting(), 0s).error(), std::errc::timed_out);
        EXPECT_EQ(counting::living, 3);
    }
    EXPECT_EQ(counting::living, 0);
    EXPECT_EQ(counting::copies, 0);
}

TEST(channel, senders_and_receivers_are_served_in_order_of_arrival) {
    weft::loop l;
    weft::channel<int> c;
    std::vector<int> received, served;
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 4; ++i)
        fibers.emplace_back([&, i] { EXPECT_TRUE(c.send(i)); }, weft::fiber_options{.on = l});
    l.run_until_idle();
    for (int i = 0; i < 4; ++i) received.push_back(*c.try_recv());
    EXPECT_EQ(received, (std::vector<int>{0, 1, 2, 3}));
    for (int i = 0; i < 4; ++i)
        fibers.emplace_back(
            [&, i] {
                EXPECT_EQ(*c.recv(), 10 + i);
                served.push_back(i);
            },
            weft::fiber_options{.on = l});
    l.run_until_idle();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(c.try_send(10 + i));
    l.run();
    EXPECT_EQ(served.size(), 4u);
    for (auto& f : fibers) f.join();
}

// Any number of senders and receivers, any capacity, deadlines and a stop among them: what was
// sent and not refused arrives once, and in each sender's order.
TEST(channel, loses_and_duplicates_nothing_under_any_schedule) {
    EXPECT_TRUE(weft::testing::explore(60, [](std::uint64_t seed) {
        weft::testing::virtual_loop l(seed);
        std::mt19937_64 random(seed);
        weft::channel<int> c(random() % 4);
        std::vector<int> sent, got;
        bool ordered = true;
        int senders = 3;
        std::vector<weft::fiber> fibers;
        for (int s = 0; s < 3; ++s)
            fibers.emplace_back(
                [&, s] {
                    for (int i = 0; i < 20; ++i) {
                        const int item = s * 1000 + i;
                        const bool well = i % 3 == 0 ? bool(c.send(item, 1ms)) : bool(c.send(item));
                        if (well) sent.push_back(item);
                        if (i % 4 == 0) weft::this_fiber::yield();
                    }
                    if (--senders == 0) c.close();
                },
                weft::fiber_options{.on = l});
        for (int r = 0; r < 3; ++r)
            fibers.emplace_back(
                [&, r] {
                    int last[3] = {-1, -1, -1};
                    for (;;) {
                        auto item = r == 0 ? c.recv(1ms) : c.recv();
                        if (!item && item.error() == std::errc::timed_out) continue;
                        if (!item) break;
                        int& before = last[*item / 1000];
                        ordered = ordered && *item > before;
                        before = *item;
                        got.push_back(*item);
                        if (*item % 5 == 0) weft::this_fiber::sleep_for(1ms);
                    }
                },
                weft::fiber_options{.on = l});
        // A receiver that is stopped takes nothing with it.
        weft::fiber victim(
            [&] {
                while (auto item = c.recv()) got.push_back(*item);
            },
            weft::fiber_options{.on = l});
        weft::fiber stops([&] { weft::this_fiber::sleep_for(3ms), victim.request_stop(); },
                          weft::fiber_options{.on = l});
        l.run();
        for (auto& f : fibers) f.join();
        victim.join();
        stops.join();
        std::sort(sent.begin(), sent.end());
        std::sort(got.begin(), got.end());
        return ordered && sent == got;
    }));
}

// -- the laws of Go's channels ----------------------------------------------------------------

// A chain in which each passes its turn on to the next: synchronous and with room.
TEST(channel_go, fifo) {
    for (const std::size_t capacity : {0u, 10u}) {
        weft::loop l;
        constexpr int stages = 10;
        weft::channel<int> numbers(capacity);
        std::vector<std::unique_ptr<weft::channel<int>>> turns;
        for (int i = 0; i <= stages; ++i) turns.push_back(std::make_unique<weft::channel<int>>());
        std::vector<weft::fiber> fibers;
        for (int i = 0; i < stages; ++i)
            fibers.emplace_back(
                [&, i] {
                    const auto at = static_cast<std::size_t>(i);
                    EXPECT_TRUE(turns[at]->recv());
                    EXPECT_EQ(*numbers.recv(), i);
                    EXPECT_TRUE(turns[at + 1]->send(1));
                },
                weft::fiber_options{.on = l});
        weft::fiber starts(
            [&] {
                EXPECT_TRUE(turns[0]->send(0));
                for (int i = 0; i < stages; ++i) EXPECT_TRUE(numbers.send(i));
            },
            weft::fiber_options{.on = l});
        weft::fiber ends([&] { EXPECT_EQ(*turns[stages]->recv(), 1); },
                         weft::fiber_options{.on = l});
        l.run();
        for (auto& f : fibers) f.join();
        starts.join();
        ends.join();
    }
}

// A call that does not wait is served by a waiter, and by nothing else.
TEST(channel_go, nonblock) {
    weft::loop l;
    weft::channel<int> c;
    EXPECT_EQ(c.try_recv().error(), would_wait);
    EXPECT_EQ(c.try_send(1).error(), would_wait);
    weft::fiber receiver([&] { EXPECT_EQ(*c.recv(), 123); }, {.on = l});
    l.run_until_idle();
    EXPECT_TRUE(c.try_send(123));
    EXPECT_EQ(c.try_send(123).error(), would_wait) << "it has been served";
    l.run();
    receiver.join();
    weft::fiber sender([&] { EXPECT_TRUE(c.send(234)); }, {.on = l});
    l.run_until_idle();
    EXPECT_EQ(*c.try_recv(), 234);
    EXPECT_EQ(c.try_recv().error(), would_wait);
    l.run();
    sender.join();
    weft::channel<int> one(1);
    EXPECT_TRUE(one.try_send(1));
    EXPECT_EQ(one.try_send(2).error(), would_wait);
    EXPECT_EQ(*one.try_recv(), 1);
    EXPECT_EQ(one.try_recv().error(), would_wait);
}

// The sieve of primes: a growing chain of filters.
TEST(channel_go, sieve) {
    weft::loop l;
    constexpr int count = 40;
    std::vector<int> primes;
    std::vector<std::unique_ptr<weft::channel<int>>> channels;
    channels.push_back(std::make_unique<weft::channel<int>>());
    std::vector<weft::fiber> fibers;
    fibers.emplace_back(
        [out = channels[0].get()] {
            for (int i = 2; out->send(i); ++i) {
            }
        },
        weft::fiber_options{.on = l});
    weft::fiber drives(
        [&] {
            for (int i = 0; i < count; ++i) {
                weft::channel<int>* in = channels.back().get();
                const int prime = *in->recv();
                primes.push_back(prime);
                channels.push_back(std::make_unique<weft::channel<int>>());
                fibers.emplace_back([in, out = channels.back().get(), prime] {
                    for (int number : *in)
                        if (number % prime != 0 && !out->send(number)) break;
                    in->close();
                });
            }
            channels.back()->close();
        },
        weft::fiber_options{.on = l});
    l.run();
    drives.join();
    for (auto& f : fibers) f.join();
    ASSERT_EQ(primes.size(), std::size_t{count});
    EXPECT_EQ(primes[0], 2);
    EXPECT_EQ(primes[9], 29);
    EXPECT_EQ(primes[39], 173);
}

// An end that has already come takes precedence over a stop, for every caller.
TEST(channel, reports_closed_even_to_a_stopped_caller) {
    weft::loop l;
    weft::channel<int> with_room(1), from_hand_to_hand;
    with_room.close();
    from_hand_to_hand.close();
    weft::fiber f(
        [&] {
            weft::current_flow()->request_stop(weft::stop_reason::user);
            for (auto* c : {&with_room, &from_hand_to_hand}) {
                EXPECT_EQ(c->send(1).error(), weft::errc::closed);
                EXPECT_EQ(c->recv().error(), weft::errc::closed);
                EXPECT_EQ(weft::await(c->async_recv()).error(), weft::errc::closed);
            }
        },
        {.on = l});
    l.run();
    EXPECT_FALSE(f.join().is_stopped());
}

TEST(channel, a_capacity_beyond_memory_throws_bad_alloc) {
    EXPECT_THROW(weft::channel<int>(SIZE_MAX), std::bad_alloc);
    EXPECT_THROW(weft::channel<int>(SIZE_MAX / 4), std::bad_alloc);
}

}  // namespace
