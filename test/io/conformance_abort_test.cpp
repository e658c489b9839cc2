// The laws of an accept with a peer that has reset the connection between the handshake and the
// accept.
//
// Linux delivers such a connection nevertheless, and its read reports the reset; POSIX and other
// systems report the reset from the accept, with ECONNABORTED. To test both, this file defines
// accept4: the connection is the system's, and a connection that was reset is reported as on other
// systems, where a law needs that. A ring's own accepts do not call accept4: there the law is as on
// Linux.

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

// Accepts are made as soon as this is false.
std::atomic<bool> accepts_are_held{false};
std::atomic<bool> accepts_tell_aborts{false};
std::atomic<int> told_aborts{0};

bool was_reset(int number) {
    ::tcp_info i{};
    ::socklen_t bytes = sizeof i;
    return ::getsockopt(number, IPPROTO_TCP, TCP_INFO, &i, &bytes) == 0 &&
           i.tcpi_state == TCP_CLOSE;
}

}  // namespace
}  // namespace weft::testing

extern "C" int accept4(int number, ::sockaddr* peer, ::socklen_t* bytes, int flags) {
    using namespace weft::testing;
    while (accepts_are_held) std::this_thread::yield();
    const auto n = static_cast<int>(::syscall(SYS_accept4, number, peer, bytes, flags));
    if (n < 0 || !accepts_tell_aborts || !was_reset(n)) return n;
    ::close(n);
    ++told_aborts;
    errno = ECONNABORTED;
    return -1;
}

namespace weft::testing {
namespace {

class aborted_connection : public on_each_way {
protected:
    void SetUp() override {
        on_each_way::SetUp();
        told_aborts = 0;
    }
    void TearDown() override {
        accepts_tell_aborts = false;
        accepts_are_held = false;
    }
};
INSTANTIATE_ON_WAYS(aborted_connection);

struct abort_case {
    const char* name;
    bool multishot;
    bool adopted;
    bool waits;    // the accept, before there is a peer
    bool reports;  // as others do, and not as Linux
};
constexpr abort_case abort_cases[] = {
    {"first comes the peer", false, false, false, true},
    {"first comes the accept", false, false, true, true},
    {"multishot", true, false, false, true},
    {"multishot waits", true, false, true, true},
    {"adopted", false, true, true, true},
    {"as Linux has it", false, false, true, false},
    {"multishot, as Linux has it", true, false, true, false},
};

// Each of three accepting agents gets a connection that has stayed, and no error for those that
// have not; a reset connection that was delivered nevertheless reports the reset itself.
TEST_P(aborted_connection, is_not_reported_by_accept) {
    for (const abort_case& a : abort_cases) {
        SCOPED_TRACE(a.name);
        const long before = descriptor_count();
        {
            auto l = tcp_listener::bind("127.0.0.1:0", {.multishot = a.multishot}).value();
            if (a.adopted) l = tcp_listener::adopt(::dup(l.native_handle())).value();
            const endpoint to = l.local_endpoint();
            told_aborts = 0;
            accepts_tell_aborts = a.reports;
            constexpr int parties = 3;
            constexpr int gone = 4;
            std::atomic<int> served{0};
            std::atomic<int> resets{0};
            std::atomic<int> errors{0};
            std::vector<plain_fd> stay;
            const auto come = [&] {
                for (int i = 0; i < gone; ++i) {
                    plain_fd c = dialled(to);
                    reset(c);
                }
                for (int i = 0; i < parties; ++i) {
                    stay.push_back(dialled(to));
                    send_plainly(stay.back(), "x");
                }
            };
            if (!a.waits) come();
            crew servers(way(), parties, [&](auto wait) -> task<> {
                for (bool one = false; !one;) {
                    auto s = co_await wait(l.async_accept());
                    if (!s) {
                        ++errors;
                        ADD_FAILURE() << s.error().message();
                        break;
                    }
                    std::string b(1, 0);
                    const auto n = co_await wait(s->async_read(room(b)));
                    one = n.value_or(0) == 1;
                    resets += n.error() == std::errc::connection_reset;
                }
                ++served;
            });
            if (a.waits) {
                servers.asleep();
                accepts_are_held = true;
                come();
                accepts_are_held = false;
            }
            servers.join();
            EXPECT_EQ(served, parties);
            EXPECT_EQ(errors, 0);
            EXPECT_EQ(told_aborts + resets, gone);
            const bool by_ring = a.multishot && way().driver == io_kind::io_uring;
            EXPECT_EQ(told_aborts != 0, a.reports && !by_ring) << "produced: " << told_aborts;
        }
        accepts_tell_aborts = false;
        EXPECT_EQ(descriptor_count(), before);
    }
}

// Only resets arrive: the accept waits until a connection comes, and is notified of a close.
TEST_P(aborted_connection, leaves_an_accept_waiting) {
    auto l = any_listener();
    accepts_tell_aborts = true;
    std::error_code error;
    crew server(way(), [&](auto wait) -> task<> {
        const auto s = co_await wait(l.async_accept());
        error = s.error();
    });
    server.asleep();
    accepts_are_held = true;
    for (int i = 0; i < 20; ++i) {
        plain_fd c = dialled(l.local_endpoint());
        reset(c);
    }
    accepts_are_held = false;
    while (told_aborts != 20 && !server.has_ended()) std::this_thread::yield();
    server.asleep();
    EXPECT_FALSE(server.has_ended());
    l.close();
    server.join();
    EXPECT_EQ(error, errc::closed) << error.message();
    EXPECT_EQ(told_aborts, 20);
}

}  // namespace
}  // namespace weft::testing
