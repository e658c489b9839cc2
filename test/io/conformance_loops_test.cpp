// The laws of a listener that several loops accept at.

#include <sys/eventfd.h>

#include <atomic>
#include <thread>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class listener_of_loops : public on_each_way {};
INSTANTIATE_ON_WAYS(listener_of_loops);

// Three loops or threads accept at one listener: what comes is served, and its close ends all.
TEST_P(listener_of_loops, three_loops_share_a_listener) {
    for (const bool multishot : {false, true}) {
        tcp_listener l = tcp_listener::bind("127.0.0.1:0", {.multishot = multishot}).value();
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
        crew a(way(), serve);
        a.asleep();
        crew b(way(), serve);
        b.asleep();
        crew c(way(), serve);
        c.asleep();
        constexpr int peers = 60;
        for (int i = 0; i < peers; ++i) {
            const plain_fd peer = dialled(to);
            EXPECT_TRUE(is_told(peer)) << "peer " << i << " is not served";
        }
        EXPECT_EQ(served, peers);
        l.close();
        while (closed != 3 && !a.has_ended()) std::this_thread::yield();
        // The loops live: none of them holds it.
        bool refused = false;
        const auto end = steady_now() + 1s;
        while (!refused && steady_now() < end) {
            const plain_fd late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            refused = ::connect(late, to.data(), to.size()) != 0 && errno == ECONNREFUSED;
        }
        EXPECT_TRUE(refused) << "it is listened there after close()";
        EXPECT_EQ(::eventfd_write(over, 1), 0);
        a.join();
        b.join();
        c.join();
        EXPECT_EQ(closed, 3);
    }
}

}  // namespace
}  // namespace weft::testing
