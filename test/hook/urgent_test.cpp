// Cases of where a receive ends: before an urgent byte, at SO_RCVLOWAT; and of the errors that a
// call takes from its socket or leaves there.

#include <signal.h>

#include <string>
#include <vector>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;

// A connection of TCP, or a local one.
fd_pair connected(int family) {
    if (family == AF_UNIX) return fd_pair::sockets();
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    const int a = HOOKED(socket)(AF_INET, SOCK_STREAM, 0);
    HOOKED(connect)(a, as_address(at), sizeof at);
    return {a, HOOKED(accept)(l.n, nullptr, nullptr)};
}

std::string error_at(int fd) {
    int why = -1;
    socklen_t bytes = sizeof why;
    HOOKED(getsockopt)(fd, SOL_SOCKET, SO_ERROR, &why, &bytes);
    return why == 0 ? "none" : ::strerrorname_np(why);
}

POSIX_CASE(a_socket_of_messages_waits_whatever_is_urgent) {
    sockaddr_in at;
    const one_fd to(bound(SOCK_DGRAM, at));
    const one_fd from(HOOKED(socket)(AF_INET, SOCK_DGRAM, 0));
    t.beside([&] {
        for (int i = 0; i != 3; ++i) {
            after_ms(3);
            HOOKED(sendto)(from.n, "hello", 5, 0, as_address(at), sizeof at);
        }
    });
    char got[16];
    t.told("recv", HOOKED(recv)(to.n, got, sizeof got, MSG_OOB));
    t.told("recvfrom", HOOKED(recvfrom)(to.n, got, sizeof got, MSG_OOB, nullptr, nullptr));
    iovec v = {got, sizeof got};
    msghdr m{};
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    t.told("recvmsg", HOOKED(recvmsg)(to.n, &m, MSG_OOB));
    t.join();
    const auto local = fd_pair::sockets(SOCK_DGRAM);
    t.told("a local one", HOOKED(recv)(local.a, got, sizeof got, MSG_OOB));
    const auto bytes = connected(AF_INET);
    t.told("none of a stream", HOOKED(recv)(bytes.a, got, sizeof got, MSG_OOB));
}

POSIX_CASE(a_receive_of_all_ends_before_an_urgent_byte) {
    for (const int family : {AF_INET, AF_UNIX}) {
        for (const bool late : {false, true}) {
            const auto s = connected(family);
            char got[64];
            // The urgent byte is the last that is sent, and may come when all before it is taken.
            t.beside([&] {
                HOOKED(send)(s.a, "abcdef", 6, late ? 0 : MSG_OOB);
                if (!late) return;
                after_ms(5);
                HOOKED(send)(s.a, "!", 1, MSG_OOB);
            });
            if (!late) t.join();
            t.told("waitall", HOOKED(recv)(s.b, got, sizeof got, MSG_WAITALL));
            t.join();
            t.told("the urgent byte", HOOKED(recv)(s.b, got, sizeof got, MSG_OOB));
            HOOKED(send)(s.a, "ghi", 3, 0);
            iovec v[2] = {{got, 1}, {got, 2}};
            msghdr m{};
            m.msg_iov = v;
            m.msg_iovlen = 2;
            t.told("what follows", HOOKED(recvmsg)(s.b, &m, MSG_WAITALL));
        }
    }
}

POSIX_CASE(a_look_at_all_ends_before_an_urgent_byte) {
    const auto s = connected(AF_INET);
    char got[64];
    HOOKED(send)(s.a, "abcdef", 6, MSG_OOB);
    t.told("look", HOOKED(recv)(s.b, got, sizeof got, MSG_PEEK | MSG_WAITALL));
    t.told("again", HOOKED(recv)(s.b, got, 3, MSG_PEEK | MSG_WAITALL));
    t.told("take", HOOKED(recv)(s.b, got, 5, MSG_WAITALL));
    t.beside([&] {
        after_ms(5);
        HOOKED(send)(s.a, "ghi", 3, 0);
    });
    t.told("behind it", HOOKED(recv)(s.b, got, 3, MSG_PEEK | MSG_WAITALL));
    t.join();
}

POSIX_CASE(a_receive_waits_for_as_many_bytes_as_the_low_water_says) {
    for (const int family : {AF_INET, AF_UNIX}) {
        const auto s = connected(family);
        const int low = 5;
        HOOKED(setsockopt)(s.b, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
        char got[64];
        iovec v[2] = {{got, 1}, {got + 1, 32}};
        msghdr m{};
        m.msg_iov = v;
        m.msg_iovlen = 2;
        for (int i = 0; i != 5; ++i) {
            HOOKED(send)(s.a, "abc", 3, 0);
            t.beside([&] {
                after_ms(5);
                HOOKED(send)(s.a, "defgh", 5, 0);
            });
            if (i == 0) t.told("recv", HOOKED(recv)(s.b, got, sizeof got, 0));
            if (i == 1) t.told("read", HOOKED(read)(s.b, got, sizeof got));
            if (i == 2) t.told("readv", HOOKED(readv)(s.b, v, 2));
            if (i == 3) t.told("recvmsg", HOOKED(recvmsg)(s.b, &m, 0));
            if (i == 4)
                t.told("a look",
                       HOOKED(recv)(s.b, got, sizeof got, MSG_PEEK) >= (family == AF_UNIX ? 3 : 5));
            t.join();
            HOOKED(recv)(s.b, got, sizeof got, MSG_DONTWAIT);
        }
        HOOKED(send)(s.a, "abc", 3, 0);
        t.told("no more than are asked for", HOOKED(recv)(s.b, got, 2, 0));
        set_timeout(s.b, SO_RCVTIMEO, 10);
        t.told("what came in time", HOOKED(recv)(s.b, got, sizeof got, 0));
    }
}

POSIX_CASE(many_messages_begin_with_the_error_of_the_socket) {
    auto s = connected(AF_INET);
    HOOKED(send)(s.b, "x", 1, 0);
    HOOKED(send)(s.a, "hello", 5, 0);
    after_ms(2);
    s.close_b();  // with something to read: a reset
    after_ms(5);
    const auto u = connected(AF_INET);
    char got[8];
    iovec v = {got, 1};
    mmsghdr m{};
    m.msg_hdr.msg_iov = &v;
    m.msg_hdr.msg_iovlen = 1;
    timespec limit = {1, 0};
    t.told("recvmmsg", HOOKED(recvmmsg)(s.a, &m, 1, 0, &limit));
    t.told("what is left", HOOKED(recvmmsg)(s.a, &m, 1, 0, &limit));
}

std::atomic<int> pipe_signals{0};

// What a full local socket reports of the close of its peer: to a writer that waits from the
// beginning, and to a writer that has sent a part.
POSIX_CASE(a_local_writer_takes_the_error_of_its_socket) {
    struct sigaction counts{};
    struct sigaction before{};
    counts.sa_handler = [](int) { ++pipe_signals; };
    HOOKED(sigaction)(SIGPIPE, &counts, &before);
    const std::vector<char> much(1'000'000, 'x');
    for (const bool has_part : {true, false})
        for (const bool is_read : {true, false})
            for (const int by : {0, 1, 2}) {
                pipe_signals = 0;
                auto s = fd_pair::sockets();
                char room[4096];
                if (!has_part)
                    while (HOOKED(send)(s.a, room, sizeof room, MSG_DONTWAIT) > 0) {
                    }
                t.beside([&] {
                    after_ms(10);
                    if (is_read)
                        HOOKED(shutdown)(s.b, SHUT_RDWR);
                    else
                        s.close_b();  // with what was not read
                });
                iovec v = {const_cast<char*>(much.data()), much.size()};
                msghdr m{};
                m.msg_iov = &v;
                m.msg_iovlen = 1;
                const long n = by == 0   ? HOOKED(write)(s.a, much.data(), much.size())
                               : by == 1 ? HOOKED(send)(s.a, much.data(), much.size(), 0)
                                         : HOOKED(sendmsg)(s.a, &m, 0);
                t.told("sent", n > 0 ? 1 : n);
                t.told("signals", pipe_signals);
                t.said("what is left", error_at(s.a));
                t.told("the next", HOOKED(send)(s.a, "x", 1, 0));
                t.told("signals", pipe_signals);
                t.join();
            }
    HOOKED(sigaction)(SIGPIPE, &before, nullptr);
}

POSIX_CASE(a_wait_for_messages_ends_though_the_socket_is_to_wait_no_more) {
    for (int by = 0; by != 4; ++by) {
        const auto s = fd_pair::sockets(SOCK_DGRAM);
        t.beside([&] {
            after_ms(10);
            HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
            HOOKED(shutdown)(s.a, SHUT_RD);
        });
        char got[8];
        sockaddr_un from{};
        socklen_t room = sizeof from;
        iovec v = {got, sizeof got};
        mmsghdr m{};
        m.msg_hdr.msg_iov = &v;
        m.msg_hdr.msg_iovlen = 1;
        m.msg_len = 7;
        if (by == 0) t.told("read", HOOKED(read)(s.a, got, sizeof got));
        if (by == 1)
            t.told("recvfrom", HOOKED(recvfrom)(s.a, got, sizeof got, 0, as_address(from), &room));
        if (by == 2) t.told("recvmsg", HOOKED(recvmsg)(s.a, &m.msg_hdr, 0));
        if (by == 3) t.told("recvmmsg", HOOKED(recvmmsg)(s.a, &m, 1, 0, nullptr));
        t.told("address", by == 1 ? room : m.msg_hdr.msg_namelen);
        t.told("bytes", m.msg_len);
        t.join();
    }
}

// The writer's own direction, or the one in which its peer reads.
POSIX_CASE(a_local_writer_that_waits_ends_when_its_direction_is_shut_down) {
    const std::vector<char> much(1'000'000, 'x');
    for (const bool own : {true, false})
        for (const bool has_part : {true, false}) {
            const auto s = fd_pair::sockets();
            char room[4096];
            if (!has_part)
                while (HOOKED(send)(s.a, room, sizeof room, MSG_DONTWAIT) > 0) {
                }
            t.beside([&] {
                after_ms(10);
                HOOKED(shutdown)(own ? s.a : s.b, own ? SHUT_WR : SHUT_RD);
            });
            const long n = HOOKED(write)(s.a, much.data(), much.size());
            t.told("written", n > 0 ? 1 : n);
            t.join();
        }
}

}  // namespace
