// Cases of read, write and their family.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;
using std::chrono::milliseconds;

POSIX_CASE(read_waits_for_what_a_socket_gets) {
    auto s = fd_pair::sockets();
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "hello", 5);
        after_ms(5);
        s.close_b();
    });
    char got[16] = {};
    t.told("read", HOOKED(read)(s.a, got, sizeof got));
    t.said("got", got);
    t.told("at the end", HOOKED(read)(s.a, got, sizeof got));
    t.told("and again", HOOKED(__read_chk)(s.a, got, sizeof got, sizeof got));
    t.told("nothing asked for", HOOKED(read)(s.a, got, 0));
    t.join();
    t.told("write to nobody", HOOKED(write)(s.a, "x", 1));
}

POSIX_CASE(a_pipe_waits_in_both_directions) {
    auto p = fd_pair::pipe();
    std::string sent(300'000, 'a');
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
    std::string got;
    t.beside([&] {
        char some[7000];
        ssize_t n;
        while ((n = HOOKED(read)(p.a, some, sizeof some)) > 0)
            got.append(some, static_cast<std::size_t>(n));
    });
    t.told("all of it", HOOKED(write)(p.b, sent.data(), sent.size()));
    p.close_b();
    t.join();
    t.told("came as it was sent", got == sent);
    auto q = fd_pair::pipe(O_NONBLOCK | O_CLOEXEC);
    char c;
    t.told("read of an empty one", HOOKED(read)(q.a, &c, 1));
    t.told("flags", HOOKED(fcntl)(q.a, F_GETFL, nullptr) & O_NONBLOCK);
    const auto part = HOOKED(write)(q.b, sent.data(), sent.size());
    t.told("what fits", part > 0 && part < static_cast<ssize_t>(sent.size()));
    t.told("and no more", HOOKED(write)(q.b, "x", 1));
    q.close_a();
    t.told("nobody reads", HOOKED(write)(q.b, "x", 1));
}

// A pipe with O_DIRECT keeps the data of each write apart; so do readers that find a write of no
// more than PIPE_BUF whole. A pipe that was in a splice no longer supports the system's attempt
// that does not wait; here the splice is refused.
POSIX_CASE(writev_gives_a_pipe_one_message_whatever_its_buffers) {
    char bytes[10'000] = {};
    for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<char>('a' + i / 100 % 26);
    const auto in_parts = [&](std::size_t first, std::size_t second) {
        return std::array<iovec, 3>{{{bytes, first}, {bytes, 0}, {bytes + first, second}}};
    };
    for (const bool is_spliced : {false, true}) {
        for (const std::size_t first : {0u, 2u, 3000u, 5000u}) {
            const auto p = fd_pair::pipe(O_DIRECT);
            if (is_spliced) t.told("splice", HOOKED(splice)(p.a, nullptr, p.b, nullptr, 1, 0));
            for (const std::size_t second : {6u, 4000u}) {
                const auto v = in_parts(first, second);
                t.told("writev", HOOKED(writev)(p.b, v.data(), 3));
                char got[10'000];
                for (std::size_t come = 0; come < first + second;) {
                    const ssize_t n = HOOKED(read)(p.a, got, sizeof got);
                    t.told("read", n);
                    if (n <= 0) break;
                    t.told("as it was given",
                           std::memcmp(got, bytes + come, static_cast<std::size_t>(n)) == 0);
                    come += static_cast<std::size_t>(n);
                }
            }
        }
    }
}

// The bytes that it waits with start where the last message has ended.
POSIX_CASE(writev_that_waits_for_a_pipe_goes_on_with_a_whole_message) {
    std::string bytes(10'000, 'x');
    for (const bool is_spliced : {false, true}) {
        const auto p = fd_pair::pipe(O_DIRECT);
        if (is_spliced) t.told("splice", HOOKED(splice)(p.a, nullptr, p.b, nullptr, 1, 0));
        t.told("room", HOOKED(fcntl)(p.b, F_SETPIPE_SZ, reinterpret_cast<void*>(4096L)));
        t.beside([&] {
            after_ms(3);
            char got[10'000];
            for (std::size_t come = 0; come < bytes.size();) {
                const ssize_t n = HOOKED(read)(p.a, got, sizeof got);
                t.told("read", n);
                if (n <= 0) break;
                come += static_cast<std::size_t>(n);
            }
        });
        const iovec v[2] = {{bytes.data(), 5000}, {bytes.data() + 5000, 5000}};
        const ssize_t n = HOOKED(writev)(p.b, v, 2);
        t.join();
        t.told("writev", n);
    }
}

POSIX_CASE(writev_of_much_waits_for_its_reader) {
    auto s = fd_pair::sockets();
    std::string a(400'000, 'a');
    std::string b(3, 'b');
    std::string c(700'000, 'c');
    std::string got;
    t.beside([&] {
        char some[2][5000];
        for (;;) {
            const iovec v[2] = {{some[0], 5000}, {some[1], 5000}};
            const ssize_t n = HOOKED(readv)(s.a, v, 2);
            if (n <= 0) return;
            const auto count = static_cast<std::size_t>(n);
            got.append(some[0], std::min<std::size_t>(count, 5000));
            if (count > 5000) got.append(some[1], count - 5000);
        }
    });
    volatile int less = -1;
    const iovec v[4] = {
        {a.data(), a.size()}, {nullptr, 0}, {b.data(), b.size()}, {c.data(), c.size()}};
    t.told("writev", HOOKED(writev)(s.b, v, 4));
    t.told("no buffers", HOOKED(writev)(s.b, v, 0));
    t.told("less than none", HOOKED(writev)(s.b, v, less));
    t.told("and read", HOOKED(readv)(s.b, v, less));
    s.close_b();
    t.join();
    t.told("came as it was sent", got == a + b + c);
}

POSIX_CASE(what_is_no_descriptor_is_said_so) {
    char c = 'x';
    const iovec v = {&c, 1};
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(&v);
    m.msg_iovlen = 1;
    mmsghdr mm{m, 0};
    for (const int fd : {-1, 999'999}) {
        t.told("read", HOOKED(read)(fd, &c, 1));
        t.told("write", HOOKED(write)(fd, &c, 1));
        t.told("readv", HOOKED(readv)(fd, &v, 1));
        t.told("writev", HOOKED(writev)(fd, &v, 1));
        t.told("recv", HOOKED(recv)(fd, &c, 1, 0));
        t.told("send", HOOKED(send)(fd, &c, 1, 0));
        t.told("recvfrom", HOOKED(recvfrom)(fd, &c, 1, 0, nullptr, nullptr));
        t.told("sendto", HOOKED(sendto)(fd, &c, 1, 0, nullptr, 0));
        t.told("recvmsg", HOOKED(recvmsg)(fd, &m, 0));
        t.told("sendmsg", HOOKED(sendmsg)(fd, &m, 0));
        t.told("recvmmsg", HOOKED(recvmmsg)(fd, &mm, 1, 0, nullptr));
        t.told("sendmmsg", HOOKED(sendmmsg)(fd, &mm, 1, 0));
        t.told("accept", HOOKED(accept)(fd, nullptr, nullptr));
        t.told("accept4", HOOKED(accept4)(fd, nullptr, nullptr, 0));
        auto at = loopback();
        t.told("connect", HOOKED(connect)(fd, as_address(at), sizeof at));
        t.told("close", HOOKED(close)(fd));
        t.told("dup", HOOKED(dup)(fd));
        t.told("dup2", HOOKED(dup2)(fd, 700));
        t.told("fcntl", HOOKED(fcntl)(fd, F_GETFL, nullptr));
        t.told("shutdown", HOOKED(shutdown)(fd, SHUT_RD));
        t.told("fsync", HOOKED(fsync)(fd));
        t.told("pread", HOOKED(pread)(fd, &c, 1, 0));
    }
    auto p = fd_pair::pipe();
    t.told("recv of a pipe", HOOKED(recv)(p.a, &c, 1, 0));
    t.told("send to a pipe", HOOKED(send)(p.b, &c, 1, 0));
    t.told("accept of a pipe", HOOKED(accept)(p.a, nullptr, nullptr));
    t.told("read of the end that is written", HOOKED(read)(p.b, &c, 1));
    t.told("write to the end that is read", HOOKED(write)(p.a, &c, 1));
    auto at = loopback();
    t.told("connect of a pipe", HOOKED(connect)(p.a, as_address(at), sizeof at));
}

POSIX_CASE(an_eventfd_is_waited_for) {
    const one_fd e(HOOKED(eventfd)(0, 0));
    t.beside([&] {
        after_ms(5);
        const std::uint64_t seven = 7;
        HOOKED(write)(e.n, &seven, sizeof seven);
    });
    std::uint64_t n = 0;
    t.told("read", HOOKED(read)(e.n, &n, sizeof n));
    t.told("count", static_cast<long>(n));
    t.told("too little room", HOOKED(read)(e.n, &n, 4));
    t.join();
    const one_fd q(HOOKED(eventfd)(0, EFD_NONBLOCK));
    t.told("empty", HOOKED(read)(q.n, &n, sizeof n));
}

POSIX_CASE(o_nonblock_is_what_was_set) {
    auto s = fd_pair::sockets();
    char c = 0;
    t.told("flags", HOOKED(fcntl)(s.a, F_GETFL, nullptr));
    t.told("set", HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK)));
    t.told("flags", HOOKED(fcntl64)(s.a, F_GETFL, nullptr));
    t.told("read", HOOKED(read)(s.a, &c, 1));
    t.told("recv", HOOKED(recv)(s.a, &c, 1, 0));
    const one_fd d(HOOKED(dup)(s.a));
    t.told("of its double", HOOKED(read)(d.n, &c, 1));
    int off = 0;
    t.told("ioctl", HOOKED(ioctl)(d.n, FIONBIO, &off));
    t.told("flags", HOOKED(fcntl)(s.a, F_GETFL, nullptr));
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "yz", 2);
    });
    t.told("waits again", HOOKED(read)(s.a, &c, 1));
    int waiting = 0;
    t.told("how many wait", HOOKED(ioctl)(s.a, FIONREAD, &waiting));
    t.told("so many", waiting);
    t.join();
    const auto big = std::string(4'000'000, 'x');
    HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    const ssize_t part = HOOKED(write)(s.a, big.data(), big.size());
    t.told("a part", part > 0 && part < static_cast<ssize_t>(big.size()));
    t.told("no more", HOOKED(write)(s.a, "x", 1));
    const one_fd n(HOOKED(socket)(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    t.told("made so", HOOKED(fcntl)(n.n, F_GETFL, nullptr) & O_NONBLOCK);
    t.told("closed on exec", HOOKED(fcntl)(n.n, F_GETFD, nullptr));
    t.told("nothing there", HOOKED(recv)(n.n, &c, 1, 0));
}

POSIX_CASE(a_socket_has_its_timeouts) {
    auto s = fd_pair::sockets();
    char c = 0;
    set_timeout(s.a, SO_RCVTIMEO, 30);
    timeval back{};
    socklen_t bytes = sizeof back;
    t.told("read back", HOOKED(getsockopt)(s.a, SOL_SOCKET, SO_RCVTIMEO, &back, &bytes));
    t.told("whole", back.tv_sec == 0 && back.tv_usec >= 30'000 && back.tv_usec < 45'000);
    t.took("read", milliseconds(28), [&] { t.told("read", HOOKED(read)(s.a, &c, 1)); });
    t.took("recv", milliseconds(28), [&] { t.told("recv", HOOKED(recv)(s.a, &c, 1, 0)); });
    set_timeout(s.a, SO_RCVTIMEO, 0);
    t.beside([&] {
        after_ms(50);
        HOOKED(write)(s.b, "x", 1);
    });
    t.told("none is for ever", HOOKED(read)(s.a, &c, 1));
    t.join();
    set_timeout(s.a, SO_SNDTIMEO, 30);
    const auto big = std::string(4'000'000, 'x');
    t.took("write", milliseconds(28), [&] {
        const ssize_t n = HOOKED(write)(s.a, big.data(), big.size());
        t.told("a part of much", n > 0 && n < static_cast<ssize_t>(big.size()));
    });
    t.told("nothing at all", HOOKED(write)(s.a, "x", 1));
}

POSIX_CASE(a_device_is_read_and_written) {
    const one_fd null(HOOKED(open)("/dev/null", O_RDWR, 0));
    const one_fd zero(HOOKED(open)("/dev/zero", O_RDONLY, 0));
    char c[8] = "1234567";
    t.told("write", HOOKED(write)(null.n, c, 8));
    t.told("read", HOOKED(read)(null.n, c, 8));
    t.told("zero", HOOKED(read)(zero.n, c, 8));
    t.told("is zero", c[0]);
}

}  // namespace
