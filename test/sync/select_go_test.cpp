// The laws of Go's select, by the names that its own tests have: select2 to select8, doubleselect.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/select.hpp"

using namespace std::chrono_literals;
using weft::on_closed;
using weft::on_recv;
using weft::on_send;
using weft::otherwise;

namespace {

// select2: a losing select leaves nothing behind in the queues of the other channels.
TEST(select_go, leaves_nothing_queued_in_losing_channels) {
    weft::loop l;
    weft::channel<int> data, dummy;
    constexpr int count = 1000;
    weft::fiber sender(
        [&] {
            for (int i = 0; i < count; ++i)
                EXPECT_EQ(weft::select(on_send(data, i), on_send(dummy, i)), 0u);
            data.close();
        },
        {.on = l});
    int received = 0;
    weft::fiber receiver(
        [&] {
            bool run = true;
            while (run)
                weft::select(on_recv(data, [&](int) { ++received; }),
                             on_closed(data, [&] { run = false; }),
                             on_closed(dummy, [] { ADD_FAILURE(); }));
        },
        {.on = l});
    l.run();
    sender.join();
    receiver.join();
    EXPECT_EQ(received, count);
    EXPECT_FALSE(dummy.try_recv());
}

// select3: what waits for ever and what never waits, by the state of the channel.
TEST(select_go, waits_exactly_where_the_operation_alone_would) {
    auto waits = [](auto operation) {
        bool over = false;
        {
            weft::loop l;
            weft::fiber f([&] { operation(), over = true; }, {.on = l});
            l.run_until_idle();
            f.detach();
            if (over) return false;
        }  // a stop ends it
        return true;
    };
    auto ignore = [](int) {};
    weft::channel<int> hand, empty(1), full(1), closed(1);
    EXPECT_TRUE(full.try_send(1));
    closed.close();
    EXPECT_TRUE(waits([&] { weft::select(on_send(hand, 1)); }));
    EXPECT_TRUE(waits([&] { weft::select(on_recv(hand, ignore)); }));
    EXPECT_TRUE(waits([&] { weft::select(on_recv(empty, ignore)); }));
    EXPECT_TRUE(waits([&] { weft::select(on_send(full, 1)); }));
    EXPECT_TRUE(waits([&] { weft::select(on_send(full, 1), on_recv(empty, ignore)); }));
    EXPECT_FALSE(waits([&] { weft::select(on_send(hand, 1), otherwise([] {})); }));
    EXPECT_FALSE(waits([&] { weft::select(on_closed(closed, [] {})); }));
    EXPECT_FALSE(waits([&] { weft::select(on_send(full, 1), on_closed(closed, [] {})); }));
    EXPECT_FALSE(waits([&] { weft::select(on_recv(full, ignore)); }));
    EXPECT_FALSE(waits([&] { weft::select(on_send(full, 1)); }));
}

// select4: of the cases that do not happen nothing is carried out, not even where their item would
// go.
TEST(select_go, runs_nothing_of_a_case_that_is_not_selected) {
    weft::channel<int> silent, ready(1);
    int place = 0, asked = 0;
    auto destination = [&]() -> int& {
        ++asked;
        return place;
    };
    EXPECT_TRUE(ready.try_send(42));
    EXPECT_EQ(weft::select(on_recv(silent, [&](int i) { destination() = i; }),
                           on_recv(ready, [&](int i) { place = i; })),
              1u);
    EXPECT_EQ(place, 42);
    EXPECT_EQ(weft::select(on_recv(silent, [&](int i) { destination() = i; }),
                           on_send(silent, 1, [&] { ++asked; }), otherwise([] {})),
              2u);
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(place, 42);
}

// select5: random selects against random selects, under many orders: what was sent arrives once.
TEST(select_go, random_selects_deliver_each_item_once) {
    EXPECT_TRUE(weft::testing::explore(60, [](std::uint64_t seed) {
        weft::testing::virtual_loop l(seed);
        weft::channel<int> a, b(1), c(2);
        std::vector<int> sent, got;
        int senders = 2;
        std::vector<weft::fiber> fibers;
        for (int s = 0; s < 2; ++s)
            fibers.emplace_back(
                [&, s] {
                    for (int i = 0; i < 30; ++i) {
                        const int item = s * 100 + i;
                        auto done = [&] { sent.push_back(item); };
                        if ((i + s) % 4 == 0)
                            weft::select(on_send(c, item, done), on_send(a, item, done),
                                         weft::on_timeout(1ms, [] {}));
                        else
                            weft::select(on_send(a, item, done), on_send(b, item, done),
                                         on_send(c, item, done));
                    }
                    if (--senders == 0) a.close(), b.close(), c.close();
                },
                weft::fiber_options{.on = l});
        for (int r = 0; r < 3; ++r)
            fibers.emplace_back(
                [&, r] {
                    auto take = [&](int i) { got.push_back(i); };
                    std::size_t which = 0;
                    while (which != weft::select_none) {
                        if (r == 0)
                            which = weft::select(on_recv(c, take), on_recv(b, take),
                                                 on_recv(a, take), on_recv(b, take));
                        else
                            which =
                                weft::select(on_recv(a, take), on_recv(b, take), on_recv(c, take));
                        if (r == 2) weft::this_fiber::sleep_for(1ms);
                    }
                },
                weft::fiber_options{.on = l});
        l.run();
        for (auto& f : fibers) f.join();
        std::sort(sent.begin(), sent.end());
        std::sort(got.begin(), got.end());
        return sent == got;
    }));
}

// select6: a select that another channel ended is no longer queued, and the next in the queue is
// served.
TEST(select_go, serves_the_waiter_behind_a_losing_select) {
    weft::loop l;
    weft::channel<bool> one, two, never_sent;
    weft::channel<bool> order;
    auto ignore = [](bool) {};
    std::vector<weft::fiber> fibers;
    fibers.emplace_back([&] { static_cast<void>(one.recv()); }, weft::fiber_options{.on = l});
    fibers.emplace_back(
        [&] {
            EXPECT_EQ(weft::select(on_recv(two, ignore), on_recv(never_sent, ignore)), 0u);
            static_cast<void>(one.recv());
        },
        weft::fiber_options{.on = l});
    fibers.emplace_back([&] { EXPECT_TRUE(never_sent.recv()); }, weft::fiber_options{.on = l});
    l.run_until_idle();
    EXPECT_TRUE(two.try_send(true));
    EXPECT_TRUE(never_sent.try_send(true)) << "the loser is passed over";
    l.run_until_idle();
    EXPECT_TRUE(one.try_send(true));
    EXPECT_TRUE(one.try_send(true));
    l.run();
    for (auto& f : fibers) f.join();
}

// select7: an item that is discarded is received like any other: each way to receive is paired with
// each way to send, in either order, by direct handoff and through a buffer.
TEST(select_go, an_item_may_be_discarded) {
    auto ignore = [](int) {};
    using way = void (*)(weft::channel<int>& c, weft::channel<int>& silent);
    const way receives[] = {
        [](auto& c, auto&) { EXPECT_TRUE(c.recv()); },
        [](auto& c, auto&) { EXPECT_EQ(weft::select(on_recv(c, [](int) {})), 0u); },
        [](auto& c, auto& silent) {
            EXPECT_EQ(
                weft::select(on_recv(silent, [](int) { ADD_FAILURE(); }), on_recv(c, [](int) {})),
                1u);
        },
    };
    const way sends[] = {
        [](auto& c, auto&) { EXPECT_TRUE(c.send(1)); },
        [](auto& c, auto&) { EXPECT_EQ(weft::select(on_send(c, 1)), 0u); },
        [](auto& c, auto& silent) {
            EXPECT_EQ(weft::select(on_send(silent, 2, [] { ADD_FAILURE(); }), on_send(c, 1)), 1u);
        },
    };
    for (const way receive : receives)
        for (const way send : sends)
            for (const std::size_t capacity : {0u, 1u})
                for (const bool receiver_first : {true, false}) {
                    weft::loop l;
                    weft::channel<int> c(capacity), never_sent, never_received;
                    auto one_side = [&](bool receives_it) {
                        receives_it ? receive(c, never_sent) : send(c, never_received);
                    };
                    weft::fiber early([&] { one_side(receiver_first); }, {.on = l});
                    l.run_until_idle();
                    EXPECT_EQ(c.size(), receiver_first ? 0u : capacity);
                    weft::fiber late([&] { one_side(!receiver_first); }, {.on = l});
                    l.run();
                    early.join();
                    late.join();
                    EXPECT_EQ(weft::select(on_recv(c, ignore), on_recv(never_received, ignore),
                                           on_send(never_sent, 1), otherwise([] {})),
                              3u)
                        << "it is empty, and nobody stands in line";
                }
}

// select8: a return from the function of a case leaves the select and nothing else: the loop goes
// on with what follows the select, once, in each form of select.
TEST(select_go, a_return_from_a_case_leaves_only_the_select) {
    weft::channel<int> ready(1), silent;
    auto rounds = [&](auto select_once) {
        int entered = 0, left = 0, followed = 0;
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(ready.try_send(i));
            select_once([&](auto&&...) {
                ++entered;
                if (entered > 0) return;
                ++left;
            });
            ++followed;
            static_cast<void>(ready.try_recv());
        }
        EXPECT_EQ(entered, 3);
        EXPECT_EQ(left, 0);
        EXPECT_EQ(followed, 3);
    };
    auto bug = [](auto&&...) { ADD_FAILURE(); };
    rounds([&](auto f) { weft::select(on_recv(ready, f)); });
    rounds([&](auto f) { weft::select(on_recv(silent, bug), on_recv(ready, f)); });
    rounds([&](auto f) { weft::select(on_recv(ready, f), otherwise(bug)); });
    rounds([&](auto f) { weft::select(on_recv(silent, bug), otherwise(f)); });
    rounds([&](auto f) { weft::select(otherwise(f)); });
}

// doubleselect: never do two cases of one select happen. From fibers and from threads.
void sends_each_once(std::array<weft::channel<int>, 4>& c, int count) {
    for (int i = 0; i < count; ++i)
        weft::select(on_send(c[0], i), on_send(c[1], i), on_send(c[2], i), on_send(c[3], i));
    for (auto& one : c) one.close();
}

TEST(select_go, doubleselect_among_fibers) {
    EXPECT_TRUE(weft::testing::explore(20, [](std::uint64_t seed) {
        weft::testing::virtual_loop l(seed);
        std::array<weft::channel<int>, 4> c;
        std::vector<int> got;
        weft::fiber sender([&] { sends_each_once(c, 200); }, {.on = l});
        std::vector<weft::fiber> fibers;
        for (auto& one : c)
            fibers.emplace_back(
                [&] {
                    for (int i : one) got.push_back(i);
                },
                weft::fiber_options{.on = l});
        l.run();
        sender.join();
        for (auto& f : fibers) f.join();
        std::sort(got.begin(), got.end());
        for (int i = 0; i < 200; ++i)
            if (got.at(static_cast<std::size_t>(i)) != i) return false;
        return got.size() == 200;
    }));
}

TEST(select_go, doubleselect_among_threads) {
    constexpr int count = 2000;
    std::array<weft::channel<int>, 4> c;
    std::array<std::vector<int>, 4> got;
    std::vector<std::thread> threads;
    threads.emplace_back([&] { sends_each_once(c, count); });
    for (std::size_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int k : c[i]) got[i].push_back(k);
        });
    for (auto& t : threads) t.join();
    std::vector<int> all;
    for (auto& g : got) all.insert(all.end(), g.begin(), g.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), std::size_t{count});
    for (int i = 0; i < count; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
}

}  // namespace
