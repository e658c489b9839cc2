// channel_laws: the laws of whatever bytes come from. A kind is a row of channels.hpp or of the
// test that has the laws for its own kinds: an optional part of io, the hooked calls.
//
//   INSTANTIATE_CHANNEL_LAWS(channel_kinds, all_ways);
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <string>
#include <thread>

#include "test/io/channels.hpp"

namespace weft::testing {

class conformance : public on_each_channel {
protected:
    void SetUp() override {
        on_each_channel::SetUp();
        // No other thread may receive the signals of a signalfd.
        ::sigset_t s;
        ::sigemptyset(&s);
        ::sigaddset(&s, SIGRTMIN + 3);
        ::pthread_sigmask(SIG_BLOCK, &s, nullptr);
        detail::shared_io_driver();  // stays
    }
};

class conformance_of_an_end : public conformance {};
class conformance_of_a_close : public conformance {};
class conformance_of_a_close_among_loops : public conformance {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(conformance_of_a_close_among_loops);

// Data arrives before the read, during the read, and two items at a time: what a reader with room
// for less has left is there for its next read.
TEST_P(conformance, all_that_comes_is_read) {
    const long before = descriptor_count();
    {
        channel c = open();
        std::string wanted = c.feed(0);
        std::string got;
        std::size_t all = 0;
        constexpr int times = 9;
        const std::size_t one = wanted.size();
        crew reader(way(), [&](auto wait) -> task<> {
            std::string b(4096, 0);
            while (all < one * times) {
                const auto n = co_await c.near->read(wait, room(b));
                if (!n || *n == 0) {
                    ADD_FAILURE() << n.error().message() << " with " << all << " of "
                                  << one * times;
                    break;
                }
                got.append(b, 0, *n);
                all += *n;
            }
        });
        for (int i = 1; i < times; i += 2) {
            reader.asleep();
            wanted += c.feed(i);
            wanted += c.feed(i + 1);
        }
        reader.join();
        EXPECT_EQ(all, wanted.size());
        if (c.bytes_count) {
            // A terminal ends a line in its own way.
            std::erase(got, '\r');
            EXPECT_EQ(got, wanted);
        }
    }
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(conformance_of_an_end, reports_the_end_of_the_far_end) {
    channel c = open();
    const std::string last = c.feed(1);
    std::error_code error;
    std::size_t all = 0;
    crew reader(way(), [&](auto wait) -> task<> {
        std::string b(4096, 0);
        for (;;) {
            const auto n = co_await c.near->read(wait, room(b));
            if (!n) error = n.error();
            if (n.value_or(0) == 0) break;
            all += *n;
        }
    });
    reader.asleep();
    c.end();
    reader.join();
    EXPECT_EQ(all, last.size());
    EXPECT_EQ(error.value(), c.error_at_end);
}

TEST_P(conformance_of_a_close, ends_a_waiting_read) {
    for (const bool beside : {false, true}) {
        channel c = open();
        std::error_code error;
        crew reader(way(), [&](auto wait) -> task<> {
            std::string b(4096, 0);
            const auto n = co_await c.near->read(wait, room(b));
            error = n.error();
        });
        reader.asleep();
        if (beside)
            reader.do_beside([&] { c.near->close(); });
        else
            c.near->close();
        reader.join();
        EXPECT_EQ(error, c.near->closed()) << error.message();
        // And a reader that comes after the close.
        crew late(way(), [&](auto wait) -> task<> {
            std::string b(4096, 0);
            const auto n = co_await c.near->read(wait, room(b));
            error = n.error();
        });
        late.join();
        EXPECT_EQ(error, c.near->closed()) << error.message();
        EXPECT_EQ(c.near->number(), -1);
    }
}

// Three loops, or threads, each of which waits for the same descriptor.
TEST_P(conformance, notifies_each_of_three_loops) {
    channel c = open();
    std::atomic<int> notified{0};
    const auto wait_once = [&](auto wait) -> task<> {
        const auto r = co_await c.near->wait(wait, fd_events::read, never);
        notified += r && has(*r, fd_events::read);
    };
    crew a(way(), wait_once);
    a.asleep();
    crew b(way(), wait_once);
    b.asleep();
    crew d(way(), wait_once);
    d.asleep();
    c.feed(0);
    a.join();
    b.join();
    d.join();
    EXPECT_EQ(notified, 3);
}

TEST_P(conformance_of_an_end, notifies_each_of_three_loops_of_the_far_end_s_end) {
    channel c = open();
    std::atomic<int> notified{0};
    const auto wait_once = [&](auto wait) -> task<> {
        const auto r = co_await c.near->wait(wait, fd_events::read, never);
        notified += r.has_value();
    };
    crew a(way(), wait_once);
    a.asleep();
    crew b(way(), wait_once);
    b.asleep();
    crew d(way(), wait_once);
    d.asleep();
    c.end();
    a.join();
    b.join();
    d.join();
    EXPECT_EQ(notified, 3);
}

// The loops stay alive: anything that one of them still held would make the far end wait.
TEST_P(conformance_of_a_close_among_loops, ends_the_wait_of_each_loop_and_notifies_the_far_end) {
    channel c = open();
    const plain_fd over(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    std::atomic<int> late{0};
    std::atomic<int> notified{0};
    const auto wait_twice = [&](auto wait) -> task<> {
        // The first ends by its deadline, as a wait of a limited time does.
        const auto soon = after(now(), std::chrono::milliseconds(2));
        const auto early = co_await c.near->wait(wait, fd_events::read, soon);
        EXPECT_EQ(early.error(), std::errc::timed_out);
        ++late;
        const auto r = co_await c.near->wait(wait, fd_events::read, never);
        notified += r.error() == c.near->closed();
        const plain_fd mine(::dup(over));
        const fd_watch until(mine);
        const auto end = co_await wait(until.async_wait(fd_events::read));
        EXPECT_TRUE(end.has_value());
    };
    crew a(way(), wait_twice);
    a.asleep();
    crew b(way(), wait_twice);
    b.asleep();
    crew d(way(), wait_twice);
    while (late != 3 && !d.has_ended()) std::this_thread::yield();
    a.asleep();
    b.asleep();
    d.asleep();
    c.near->close();
    while (notified != 3 && !a.has_ended()) std::this_thread::yield();
    if (c.far != nullptr) {
        pollfd p{*c.far, POLLRDHUP, 0};
        EXPECT_EQ(::poll(&p, 1, 2000), 1) << "the far end is not notified";
    }
    EXPECT_EQ(::eventfd_write(over, 1), 0);
    a.join();
    b.join();
    d.join();
    EXPECT_EQ(notified, 3);
}

}  // namespace weft::testing

// What has no end, or is the program's own to close, is held to the other laws.
#define INSTANTIATE_CHANNEL_LAWS(kinds, ways)                                                \
    INSTANTIATE_ON_CHANNELS(conformance, kinds, ways);                                       \
    INSTANTIATE_TEST_SUITE_P(                                                                \
        of, conformance_of_an_end,                                                           \
        ::testing::ValuesIn(weft::testing::channel_cases(                                    \
            kinds, ways, [](const weft::testing::channel_kind& k) { return k.has_end; })),   \
        weft::testing::name_of_channel);                                                     \
    INSTANTIATE_TEST_SUITE_P(                                                                \
        of, conformance_of_a_close,                                                          \
        ::testing::ValuesIn(weft::testing::channel_cases(                                    \
            kinds, ways, [](const weft::testing::channel_kind& k) { return k.is_weft_s; })), \
        weft::testing::name_of_channel);                                                     \
    INSTANTIATE_TEST_SUITE_P(of, conformance_of_a_close_among_loops,                         \
                             ::testing::ValuesIn(weft::testing::channel_cases(               \
                                 kinds, ways,                                                \
                                 [](const weft::testing::channel_kind& k) {                  \
                                     return k.is_weft_s && k.close_tells_waits;              \
                                 })),                                                        \
                             weft::testing::name_of_channel)
