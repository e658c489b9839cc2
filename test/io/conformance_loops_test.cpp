// The laws of what several loops use at once.

#include <signal.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/io/plain_peer.hpp"
#include "weft/io/process.hpp"
#include "weft/io/signal_set.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class listener_of_loops : public on_each_way {};
INSTANTIATE_ON_WAYS(listener_of_loops);

// Three loops or threads accept at one listener: what comes is served, and its close ends all.
template <class Listener>
void expect_loops_share(const way& w, Listener l, int type = SOCK_STREAM) {
    const endpoint to = l.local_endpoint();
    const plain_fd over(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    std::atomic<int> served{0};
    std::atomic<int> closed{0};
    const auto serve = [&](auto wait) -> task<> {
        for (;;) {
            auto s = co_await wait(l.async_accept());
            if (!s) {
                closed += s.error() == errc::closed;
                break;
            }
            ++served;
        }
        const plain_fd mine(::dup(over));
        const fd_watch until(mine);
        const auto r = co_await wait(until.async_wait(fd_events::read));
        EXPECT_TRUE(r.has_value());
    };
    crew a(w, serve);
    a.asleep();
    crew b(w, serve);
    b.asleep();
    crew c(w, serve);
    c.asleep();
    constexpr int peers = 60;
    for (int i = 0; i < peers; ++i) {
        const plain_fd peer = dialled(to, 0, type);
        EXPECT_TRUE(is_told(peer)) << "peer " << i << " is not served";
    }
    EXPECT_EQ(served, peers);
    l.close();
    while (closed != 3 && !a.has_ended()) std::this_thread::yield();
    // The loops are alive: none of them holds it.
    bool refused = false;
    const auto end = steady_now() + 1s;
    while (!refused && steady_now() < end) {
        const plain_fd late(::socket(to.family(), type | SOCK_CLOEXEC, 0));
        refused = ::connect(late, to.data(), to.size()) != 0 && errno == ECONNREFUSED;
    }
    EXPECT_TRUE(refused) << "it is listened there after close()";
    EXPECT_EQ(::eventfd_write(over, 1), 0);
    a.join();
    b.join();
    c.join();
    EXPECT_EQ(closed, 3);
}

TEST_P(listener_of_loops, three_loops_share_a_listener) {
    for (const bool multishot : {false, true})
        expect_loops_share(way(),
                           tcp_listener::bind("127.0.0.1:0", {.multishot = multishot}).value());
    expect_loops_share(way(), unix_listener::bind(local_name()).value());
    expect_loops_share(way(), unix_seqpacket_listener::bind(local_name()).value(), SOCK_SEQPACKET);
}

class shared_by_loops : public on_each_way {};
INSTANTIATE_ON_WAYS(shared_by_loops);

// Each message goes to one agent, on whichever loop that agent is, and the close ends all waits;
// `receive` returns the numbers that have arrived, or none.
template <class Close, class Send, class Receive>
void expect_each_is_told_once(const way& w, Close close, Send send, Receive receive) {
    constexpr int all = 240;
    std::array<std::atomic<int>, all> notified{};
    std::atomic<int> come{0};
    std::atomic<int> wrong{0};
    const auto take = [&](auto wait) -> task<> {
        for (;;) {
            const std::vector<int> numbers = co_await receive(wait);
            if (numbers.empty() || come > 2 * all) break;
            for (const int n : numbers) {
                if (n < 0 || n >= all)
                    ++wrong;
                else
                    ++notified[static_cast<std::size_t>(n)];
                ++come;
            }
        }
    };
    crew a(w, take);
    crew b(w, take);
    crew c(w, take);
    // No more at once than there is certainly room for.
    for (int i = 0; i < all; ++i) {
        const auto end = steady_now() + crew::patience;
        while (i - come > 15 && steady_now() < end) std::this_thread::yield();
        send(i);
    }
    const auto end = steady_now() + crew::patience;
    while (come != all && steady_now() < end) std::this_thread::yield();
    a.asleep();
    b.asleep();
    c.asleep();
    close();
    a.join();
    b.join();
    c.join();
    EXPECT_EQ(wrong, 0);
    for (int i = 0; i < all; ++i) EXPECT_EQ(notified[static_cast<std::size_t>(i)], 1) << i;
}

int number_in(std::string_view text) {
    int n = -1;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
}
template <class Socket>
void expect_messages_are_told_once(const way& w, Socket& s, int far) {
    expect_each_is_told_once(
        w, [&] { s.close(); }, [&](int i) { send_plainly(far, std::to_string(i)); },
        [&](auto wait) -> task<std::vector<int>> {
            std::string b(16, 0);
            const auto r = co_await wait(s.async_recv(room(b)));
            if (!r) {
                EXPECT_EQ(r.error(), errc::closed) << r.error().message();
                co_return {};
            }
            co_return {number_in(std::string_view(b).substr(0, r->bytes))};
        });
}

TEST_P(shared_by_loops, each_message_is_received_on_one_of_three_loops) {
    udp_socket s = udp_socket::bind("127.0.0.1:0").value();
    const plain_fd far = dialled(s.local_endpoint(), 0, SOCK_DGRAM);
    expect_messages_are_told_once(way(), s, far);
    int n[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, n), 0);
    unix_datagram local = unix_datagram::adopt(n[0]).value();
    expect_messages_are_told_once(way(), local, plain_fd(n[1]));
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n), 0);
    unix_seqpacket packets = unix_seqpacket::adopt(n[0]).value();
    expect_messages_are_told_once(way(), packets, plain_fd(n[1]));
}

TEST_P(shared_by_loops, each_datagram_of_a_batch_is_received_on_one_of_three_loops) {
    udp_socket s = udp_socket::bind("127.0.0.1:0").value();
    const plain_fd far = dialled(s.local_endpoint(), 0, SOCK_DGRAM);
    expect_each_is_told_once(
        way(), [&] { s.close(); }, [&](int i) { send_plainly(far, std::to_string(i)); },
        [&](auto wait) -> task<std::vector<int>> {
            std::array<std::string, 4> rooms;
            std::array<incoming_datagram, 4> all;
            for (std::size_t i = 0; i < 4; ++i) {
                rooms[i].resize(16);
                all[i].into = room(rooms[i]);
            }
            const auto r = co_await wait(s.async_recv_many(all));
            if (!r) {
                EXPECT_EQ(r.error(), errc::closed) << r.error().message();
                co_return {};
            }
            std::vector<int> numbers;
            for (std::size_t i = 0; i < *r; ++i)
                numbers.push_back(number_in(std::string_view(rooms[i]).substr(0, all[i].bytes)));
            co_return numbers;
        });
}

// No other test of this file has this signal, of which none that is queued is lost.
TEST_P(shared_by_loops, each_signal_is_delivered_to_one_of_three_loops) {
    const int number = SIGRTMIN + 7;
    signal_set set = signal_set::open({number}).value();
    expect_each_is_told_once(
        way(), [&] { set.close(); },
        [&](int i) {
            ::sigval value;
            value.sival_int = i;
            EXPECT_EQ(::sigqueue(::getpid(), number, value), 0);
        },
        [&](auto wait) -> task<std::vector<int>> {
            const auto r = co_await wait(set.async_wait());
            if (!r) {
                EXPECT_EQ(r.error(), errc::closed) << r.error().message();
                co_return {};
            }
            co_return {r->value};
        });
}

TEST_P(shared_by_loops, the_exit_of_a_process_is_delivered_to_each_of_three_loops) {
    process p = process::spawn({"sh", "-c", "cat; exit 3"}, {.in = child_io::piped}).value();
    std::atomic<int> notified{0};
    const auto look = [&](auto wait) -> task<> {
        const auto r = co_await wait(p.async_wait());
        notified += r.value_or(exit_status{}).code == 3;
    };
    crew a(way(), 5, look);
    a.asleep();
    crew b(way(), 5, look);
    b.asleep();
    crew c(way(), 5, look);
    c.asleep();
    p.in().close();
    a.join();
    b.join();
    c.join();
    EXPECT_EQ(notified, 15);
}

}  // namespace
}  // namespace weft::testing
