// The laws of connections, of bytes that are not alike and of transfers of nothing (test/io), by
// the calls of libc: in a fiber over each driver, and on a plain thread, where hooks do nothing and
// the system shows what the law is.

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "test/io/plain_peer.hpp"
#include "weft/hook/hook.hpp"

extern "C" int let_accepts_tell_aborts(bool on);

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr way called_ways[] = {{io_kind::epoll, kind::fiber},
                               {io_kind::io_uring, kind::fiber},
                               {io_kind::poll, kind::fiber},
                               {io_kind::epoll, kind::thread}};

class called : public ::testing::TestWithParam<way> {
protected:
    void SetUp() override {
        WEFT_SKIP_IF_NOT_HERE(GetParam());
        detail::shared_io_driver();  // stays
    }
    void TearDown() override { hook::set_options({}); }

    const weft::testing::way& way() const { return GetParam(); }
    // f() by such an agent.
    template <class F>
    auto calls(F f) const {
        return [f, hooked = way().agent == kind::fiber](auto) -> task<> {
            EXPECT_EQ(hook::is_enabled(), hooked);
            f();
            co_return;
        };
    }
};
INSTANTIATE_TEST_SUITE_P(by, called, ::testing::ValuesIn(called_ways), name_of_way);

struct two_ends {
    plain_fd near;
    plain_fd far;
};
two_ends local_ends(int type = SOCK_STREAM) {
    int n[2];
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, n), 0);
    return {plain_fd(n[0]), plain_fd(n[1])};
}
two_ends tcp_ends() {
    const plain_fd l(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const endpoint any = endpoint(ip_address::loopback(), 0);
    EXPECT_EQ(::bind(l, any.data(), any.size()), 0);
    EXPECT_EQ(::listen(l, 1), 0);
    plain_fd far = dialled(endpoint::of_socket(l));
    return {plain_fd(::accept(l, nullptr, nullptr)), std::move(far)};
}
// Limits the bytes that are buffered, at either end.
void make_small(const two_ends& s) {
    constexpr int bytes = 1 << 16;
    for (const int n : {int{s.near}, int{s.far}})
        for (const int name : {SO_SNDBUF, SO_RCVBUF})
            EXPECT_EQ(::setsockopt(n, SOL_SOCKET, name, &bytes, sizeof bytes), 0);
}
void fill(int number) {
    const std::string b(4096, 'x');
    while (::send(number, b.data(), b.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

TEST_P(called, urgent_byte_is_out_of_band) {
    two_ends s = tcp_ends();
    const auto at_mark = [&] {
        int there = -1;
        EXPECT_EQ(::ioctl(s.near, SIOCATMARK, &there), 0);
        return there;
    };
    crew reader(way(), calls([&] {
                    ::pollfd p{s.near, POLLPRI, 0};
                    EXPECT_EQ(::poll(&p, 1, -1), 1);
                    EXPECT_NE(p.revents & POLLPRI, 0);
                    std::array<char, 16> b{};
                    EXPECT_EQ(::recv(s.near, b.data(), b.size(), MSG_OOB), 1);
                    EXPECT_EQ(b[0], '!');
                    EXPECT_EQ(at_mark(), 0);
                    EXPECT_EQ(::recv(s.near, b.data(), b.size(), 0), 3)
                        << "no read goes past the mark";
                    EXPECT_EQ(std::string(b.data(), 3), "abc");
                    EXPECT_EQ(at_mark(), 1);
                    EXPECT_EQ(::recv(s.near, b.data(), 3, MSG_WAITALL), 3);
                    EXPECT_EQ(std::string(b.data(), 3), "def");
                    EXPECT_EQ(::recv(s.near, b.data(), 1, MSG_OOB), -1);
                    EXPECT_EQ(errno, EINVAL) << "there is none any more, and none is waited for";
                }));
    reader.asleep();
    send_plainly(s.far, "abc");
    send_plainly(s.far, "!", MSG_OOB);
    send_plainly(s.far, "def");
    reader.join();
}

// A message with a file descriptor.
struct message_with_number {
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    ::iovec part;
    ::msghdr m{};

    explicit message_with_number(std::string& bytes) : part{bytes.data(), bytes.size()} {
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
    }
    message_with_number(std::string& bytes, int number) : message_with_number(bytes) {
        ::cmsghdr* const h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(h), &number, sizeof number);
    }
    int number() {
        const ::cmsghdr* const h = CMSG_FIRSTHDR(&m);
        int n = -1;
        if (h != nullptr && h->cmsg_type == SCM_RIGHTS) std::memcpy(&n, CMSG_DATA(h), sizeof n);
        return n;
    }
};

TEST_P(called, recvmsg_waits_for_a_passed_fd) {
    const long before = descriptor_count();
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
        two_ends s = local_ends(type);
        two_ends passed = local_ends();
        crew receiver(way(), calls([&] {
                          std::string b(8, 0);
                          message_with_number m(b);
                          EXPECT_EQ(::recvmsg(s.near, &m.m, MSG_CMSG_CLOEXEC), 3);
                          const plain_fd mine(m.number());
                          EXPECT_GE(mine, 0);
                          EXPECT_EQ(::fcntl(mine, F_GETFD), FD_CLOEXEC);
                          char c = 0;
                          EXPECT_EQ(::read(mine, &c, 1), 1) << "it is waited for as any other";
                          EXPECT_EQ(c, 'x');
                      }));
        receiver.asleep();
        std::string text = "abc";
        const message_with_number m(text, passed.near);
        EXPECT_EQ(::sendmsg(s.far, &m.m, 0), 3);
        receiver.asleep();
        send_plainly(passed.far, "x");
        receiver.join();
    }
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(called, sendmsg_passes_an_fd_once_when_it_waits_for_room) {
    two_ends s = local_ends();
    make_small(s);
    two_ends passed = local_ends();
    std::string much(1 << 20, 'y');
    crew sender(way(), calls([&] {
                    const message_with_number m(much, passed.near);
                    EXPECT_EQ(::sendmsg(s.near, &m.m, MSG_NOSIGNAL),
                              static_cast<::ssize_t>(much.size()));
                }));
    sender.asleep();
    EXPECT_FALSE(sender.has_ended());
    int numbers = 0;
    std::string b(1 << 16, 0);
    for (std::size_t all = 0; all < much.size();) {
        if (!is_told(s.far)) break;
        message_with_number m(b);
        const ::ssize_t n = ::recvmsg(s.far, &m.m, 0);
        if (n <= 0) break;
        all += static_cast<std::size_t>(n);
        numbers += plain_fd(m.number()) >= 0;
    }
    sender.join();
    EXPECT_EQ(numbers, 1);
}

TEST_P(called, shutdown_ends_either_direction_alone) {
    for (const bool tcp : {true, false}) {
        two_ends s = tcp ? tcp_ends() : local_ends();
        crew both(way(), calls([&] {
                      EXPECT_EQ(::shutdown(s.near, SHUT_WR), 0);
                      EXPECT_EQ(::send(s.near, "x", 1, MSG_NOSIGNAL), -1);
                      EXPECT_EQ(errno, EPIPE);
                      char b[8];
                      EXPECT_EQ(::recv(s.near, b, 4, MSG_WAITALL), 4);
                      EXPECT_EQ(::recv(s.near, b, sizeof b, 0), 0);
                      EXPECT_EQ(::read(s.near, b, sizeof b), 0) << "the end is told once alone";
                  }));
        both.asleep();
        EXPECT_TRUE(is_told(s.far));
        EXPECT_EQ(read_plainly(s.far, 1), "");
        send_plainly(s.far, "la");
        both.asleep();
        send_plainly(s.far, "st");
        both.asleep();
        EXPECT_FALSE(both.has_ended());
        EXPECT_EQ(::shutdown(s.far, SHUT_WR), 0);
        both.join();
    }
}

TEST_P(called, empty_stream_transfer_completes_at_once) {
    for (const bool tcp : {true, false}) {
        two_ends s = tcp ? tcp_ends() : local_ends();
        fill(s.near);
        crew agent(way(), calls([&] {
                       char b[4] = {};
                       ::iovec none{b, 0};
                       ::msghdr m{};
                       m.msg_iov = &none;
                       m.msg_iovlen = 1;
                       EXPECT_EQ(::read(s.near, b, 0), 0);
                       EXPECT_EQ(::readv(s.near, &none, 1), 0);
                       EXPECT_EQ(::write(s.near, b, 0), 0);
                       EXPECT_EQ(::writev(s.near, &none, 1), 0);
                       EXPECT_EQ(::send(s.near, b, 0, MSG_NOSIGNAL), 0);
                       EXPECT_EQ(::sendmsg(s.near, &m, MSG_NOSIGNAL), 0);
                       EXPECT_EQ(::recv(s.near, b, 1, MSG_DONTWAIT), -1);
                       EXPECT_EQ(errno, EAGAIN);
                   }));
        agent.join();
        send_plainly(s.far, "x");
        until_readable(s.near);
        crew reader(way(), calls([&] {
                        char b[4] = {};
                        EXPECT_EQ(::recv(s.near, b, 0, 0), 0);
                        EXPECT_EQ(::recv(s.near, b, 4, 0), 1) << "what there was is there";
                    }));
        reader.join();
    }
}

TEST_P(called, empty_datagram_is_a_message) {
    for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
        two_ends s = local_ends(type);
        crew receiver(way(), calls([&] {
                          char b[8];
                          EXPECT_EQ(::recv(s.near, b, sizeof b, 0), 0);
                          EXPECT_EQ(::recv(s.near, b, sizeof b, 0), 2);
                          EXPECT_EQ(::recv(s.near, b, 0, MSG_TRUNC), 3)
                              << "with no room for it, it is taken";
                          EXPECT_EQ(::send(s.near, b, 0, MSG_NOSIGNAL), 0);
                          EXPECT_EQ(::send(s.near, "last", 4, MSG_NOSIGNAL), 4);
                      }));
        receiver.asleep();
        EXPECT_EQ(::send(s.far, "", 0, 0), 0);
        receiver.asleep();
        send_plainly(s.far, "ab");
        receiver.asleep();
        send_plainly(s.far, "abc");
        receiver.join();
        char b[8];
        EXPECT_EQ(::recv(s.far, b, sizeof b, 0), 0);
        EXPECT_EQ(::recv(s.far, b, sizeof b, 0), 4);
    }
}

// What a full socket did not take is sent when there is room: a call that blocks is not short.
TEST_P(called, blocking_send_transfers_everything) {
    const std::string much = bytes_unlike(2 << 20);
    const auto halves = [&](std::string& of) {
        return std::array<::iovec, 2>{
            {{of.data(), 1'000'000}, {of.data() + 1'000'000, of.size() - 1'000'000}}};
    };
    using call = ::ssize_t (*)(int, std::string&, std::array<::iovec, 2>&);
    constexpr call senders[] = {
        [](int n, std::string& b, auto&) { return ::write(n, b.data(), b.size()); },
        [](int n, std::string& b, auto&) { return ::send(n, b.data(), b.size(), MSG_NOSIGNAL); },
        [](int n, std::string&, auto& v) { return ::writev(n, v.data(), 2); },
        [](int n, std::string&, auto& v) {
            ::msghdr m{};
            m.msg_iov = v.data();
            m.msg_iovlen = 2;
            return ::sendmsg(n, &m, MSG_NOSIGNAL);
        },
    };
    for (const bool tcp : {true, false})
        for (const call& c : senders) {
            two_ends s = tcp ? tcp_ends() : local_ends();
            make_small(s);
            ::ssize_t sent = -2;
            crew sender(way(), calls([&] {
                            std::string b = much;
                            auto v = halves(b);
                            sent = c(s.near, b, v);
                        }));
            sender.asleep();
            EXPECT_FALSE(sender.has_ended());
            std::string got;
            std::string piece(100'000, 0);
            while (got.size() < much.size() && is_told(s.far)) {
                const ::ssize_t n = ::read(s.far, piece.data(), piece.size());
                if (n <= 0) break;
                got.append(piece, 0, static_cast<std::size_t>(n));
            }
            sender.join();
            EXPECT_EQ(sent, static_cast<::ssize_t>(much.size()));
            EXPECT_TRUE(got == much);
        }
}

TEST_P(called, nonblocking_send_can_be_partial) {
    two_ends s = local_ends();
    make_small(s);
    crew sender(way(), calls([&] {
                    const std::string much(2 << 20, 'x');
                    const ::ssize_t n =
                        ::send(s.near, much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
                    EXPECT_GT(n, 0);
                    EXPECT_LT(n, static_cast<::ssize_t>(much.size()));
                    EXPECT_EQ(::send(s.near, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
                    EXPECT_EQ(errno, EAGAIN);
                }));
    sender.join();
}

TEST_P(called, reset_is_reported_at_each_step) {
    {
        two_ends s = tcp_ends();
        reset(s.far);
        crew first(way(), calls([&] {
                       char b[8];
                       EXPECT_EQ(::recv(s.near, b, sizeof b, 0), -1) << "before the first read";
                       EXPECT_EQ(errno, ECONNRESET);
                       EXPECT_EQ(::recv(s.near, b, sizeof b, 0), 0) << "it is told once";
                   }));
        first.join();
    }
    {
        two_ends s = tcp_ends();
        crew waits(way(), calls([&] {
                       ::pollfd p{s.near, POLLIN, 0};
                       EXPECT_EQ(::poll(&p, 1, -1), 1);
                       EXPECT_NE(p.revents & POLLERR, 0);
                       char b[8];
                       EXPECT_EQ(::read(s.near, b, sizeof b), -1);
                       EXPECT_EQ(errno, ECONNRESET);
                   }));
        waits.asleep();
        reset(s.far);
        waits.join();
    }
    {
        two_ends s = tcp_ends();
        std::atomic<bool> has_part{false};
        crew part(way(), calls([&] {
                      char b[8];
                      EXPECT_EQ(::recv(s.near, b, 3, MSG_WAITALL), 3);
                      has_part = true;
                      EXPECT_EQ(::recv(s.near, b, 8, MSG_WAITALL), -1) << "between two reads";
                      EXPECT_EQ(errno, ECONNRESET);
                  }));
        part.asleep();
        send_plainly(s.far, "123");
        while (!has_part && !part.has_ended()) std::this_thread::yield();
        part.asleep();
        reset(s.far);
        part.join();
    }
    {
        two_ends s = tcp_ends();
        make_small(s);
        crew sender(way(), calls([&] {
                        const std::string much(8 << 20, 'x');
                        ::ssize_t n = ::send(s.near, much.data(), much.size(), MSG_NOSIGNAL);
                        EXPECT_LT(n, static_cast<::ssize_t>(much.size())) << "while it sends";
                        if (n > 0) n = ::send(s.near, "x", 1, MSG_NOSIGNAL);
                        EXPECT_EQ(n, -1);
                        EXPECT_TRUE(errno == ECONNRESET || errno == EPIPE) << std::strerror(errno);
                    }));
        sender.asleep();
        reset(s.far);
        sender.join();
    }
}

TEST_P(called, connect_waits_while_the_backlog_is_full) {
    for (const bool closes : {false, true}) {
        const endpoint to = local_name();
        plain_fd l(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::bind(l, to.data(), to.size()), 0);
        ASSERT_EQ(::listen(l, 1), 0);
        const auto all = dial_until_full(to);
        crew client(way(), calls([&] {
                        const plain_fd c(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
                        EXPECT_EQ(::connect(c, to.data(), to.size()), closes ? -1 : 0)
                            << std::strerror(errno);
                        if (closes) {
                            EXPECT_EQ(errno, ECONNREFUSED);
                        }
                    }));
        client.asleep();
        EXPECT_FALSE(client.has_ended());
        if (closes)
            l.close();
        else
            for (std::size_t i = 0; i < all.size(); ++i)
                EXPECT_GE(plain_fd(::accept(l, nullptr, nullptr)), 0);
        client.join();
    }
}

// Linux accepts a connection that was reset before, and its first read reports the reset. Other
// systems, and here the code in front of the system, report it to the call that accepts: the
// caller's own call, which the caller makes again.
TEST_P(called, reset_before_accept_is_reported) {
    for (const bool tells : {false, true}) {
        const plain_fd l(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const endpoint any = endpoint(ip_address::loopback(), 0);
        ASSERT_EQ(::bind(l, any.data(), any.size()), 0);
        ASSERT_EQ(::listen(l, 8), 0);
        const endpoint to = endpoint::of_socket(l);
        const int before = let_accepts_tell_aborts(tells);
        constexpr int gone = 3;
        for (int i = 0; i < gone; ++i) {
            plain_fd c = dialled(to);
            reset(c);
        }
        std::atomic<int> told{0};
        std::atomic<bool> has_come{false};
        crew server(way(), calls([&] {
                        for (;;) {
                            const plain_fd s(told % 2 == 0
                                                 ? ::accept(l, nullptr, nullptr)
                                                 : ::accept4(l, nullptr, nullptr, SOCK_CLOEXEC));
                            if (s < 0) {
                                EXPECT_EQ(errno, ECONNABORTED);
                                if (errno != ECONNABORTED) break;
                                ++told;
                                continue;
                            }
                            char c = 0;
                            const ::ssize_t n = ::read(s, &c, 1);
                            if (n == 1) break;
                            EXPECT_EQ(errno, ECONNRESET);
                            ++told;
                        }
                        has_come = true;
                    }));
        while (told != gone && !server.has_ended()) std::this_thread::yield();
        server.asleep();
        EXPECT_FALSE(has_come) << "it waits for the next";
        const plain_fd stays = dialled(to);
        send_plainly(stays, "x");
        server.join();
        EXPECT_EQ(told, gone);
        EXPECT_EQ(let_accepts_tell_aborts(false) - before, tells ? gone : 0);
    }
}

TEST_P(called, file_read_continues_when_the_file_grows) {
    for (const bool by_thread : {false, true}) {
        hook::set_options({.files = by_thread});
        std::string path = ::testing::TempDir() + "weft.file.XXXXXX";
        plain_fd out(::mkostemp(path.data(), O_CLOEXEC));
        ASSERT_GE(out, 0);
        crew agent(way(), calls([&] {
                       const plain_fd in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
                       char b[8] = {};
                       ::pollfd p{in, POLLIN, 0};
                       EXPECT_EQ(::poll(&p, 1, -1), 1) << "it is ready at its end as well";
                       EXPECT_EQ(::read(in, b, sizeof b), 0);
                       for (const char* const text : {"abcdef", "gh"}) {
                           const std::size_t n = std::strlen(text);
                           EXPECT_EQ(::write(out, text, n), static_cast<::ssize_t>(n));
                           EXPECT_EQ(::read(in, b, sizeof b), static_cast<::ssize_t>(n));
                           EXPECT_EQ(std::string(b, n), text);
                           EXPECT_EQ(::read(in, b, sizeof b), 0);
                       }
                       ::iovec v[2] = {{b, 2}, {b + 2, 6}};
                       EXPECT_EQ(::preadv(in, v, 2, 3), 5);
                       EXPECT_EQ(std::string(b, 5), "defgh");
                       EXPECT_EQ(::pwrite(out, "XY", 2, 1), 2);
                       EXPECT_EQ(::pread(in, b, 4, 0), 4);
                       EXPECT_EQ(std::string(b, 4), "aXYd");
                       EXPECT_EQ(::pread(in, b, 0, 0), 0);
                       EXPECT_EQ(::pread(in, b, 4, 4096), 0);
                       EXPECT_EQ(::fsync(out), 0);
                       EXPECT_EQ(::write(in, "x", 1), -1);
                       EXPECT_EQ(errno, EBADF);
                   }));
        agent.join();
        ::unlink(path.c_str());
    }
}

}  // namespace
}  // namespace weft::testing
