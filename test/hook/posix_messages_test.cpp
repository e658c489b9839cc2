// Cases of the calls that only sockets have.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;
using std::chrono::milliseconds;

POSIX_CASE(flags_of_recv) {
    auto s = fd_pair::sockets();
    char got[16] = {};
    t.told("not at all", HOOKED(recv)(s.a, got, 4, MSG_DONTWAIT));
    t.told("nor so", HOOKED(recvfrom)(s.a, got, 4, MSG_DONTWAIT | MSG_WAITALL, nullptr, nullptr));
    const auto send_after = [&](std::initializer_list<const char*> parts) {
        for (const char* part : parts) {
            after_ms(4);
            HOOKED(send)(s.b, part, 2, MSG_NOSIGNAL);
        }
    };
    t.beside([&] { send_after({"ab"}); });
    t.told("a look", HOOKED(recv)(s.a, got, 1, MSG_PEEK));
    t.join();  // and no more: a local socket shows what there is
    t.told("a look at four", HOOKED(recv)(s.a, got, 4, MSG_PEEK | MSG_WAITALL));
    t.said("seen", std::string_view(got, 4));
    t.beside([&] { send_after({"cd", "ef", "gh"}); });
    t.told("all of six", HOOKED(recv)(s.a, got, 6, MSG_WAITALL));
    t.said("got", std::string_view(got, 6));
    t.told("what there is", HOOKED(__recv_chk)(s.a, got, 16, 16, 0));
    t.join();
    t.beside([&] {
        HOOKED(send)(s.b, "xyz", 3, 0);
        after_ms(4);
        s.close_b();
    });
    t.told("all of six, and the end", HOOKED(recvfrom)(s.a, got, 6, MSG_WAITALL, nullptr, nullptr));
    t.told("the end", HOOKED(recv)(s.a, got, 6, 0));
    t.join();
    t.told("to nobody", HOOKED(send)(s.a, "x", 1, MSG_NOSIGNAL));
}

POSIX_CASE(messages_of_several_buffers) {
    auto s = fd_pair::sockets();
    std::string a(500'000, 'a');
    std::string b(600'000, 'b');
    std::string got(1'100'000, 0);
    t.beside([&] {
        iovec v[2] = {{got.data(), 700'000}, {got.data() + 700'000, 400'000}};
        msghdr m{};
        m.msg_iov = v;
        m.msg_iovlen = 2;
        t.told("recvmsg", HOOKED(recvmsg)(s.a, &m, MSG_WAITALL));
    });
    iovec v[2] = {{a.data(), a.size()}, {b.data(), b.size()}};
    msghdr m{};
    m.msg_iov = v;
    m.msg_iovlen = 2;
    const long sent = HOOKED(sendmsg)(s.b, &m, 0);
    t.join();
    t.told("sendmsg", sent);
    t.told("came as it was sent", got == a + b);
    t.told("not at all", HOOKED(recvmsg)(s.a, &m, MSG_DONTWAIT));
}

POSIX_CASE(a_descriptor_is_handed_over) {
    auto s = fd_pair::sockets();
    auto p = fd_pair::pipe();
    char byte = 'x';
    iovec v = {&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr m{};
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    m.msg_control = room;
    m.msg_controllen = sizeof room;
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &p.a, sizeof(int));
    t.beside([&] {
        after_ms(4);
        t.told("sent", HOOKED(sendmsg)(s.b, &m, 0));
    });
    alignas(cmsghdr) char other[CMSG_SPACE(sizeof(int))] = {};
    msghdr r{};
    char into;
    iovec w = {&into, 1};
    r.msg_iov = &w;
    r.msg_iovlen = 1;
    r.msg_control = other;
    r.msg_controllen = sizeof other;
    const long n = HOOKED(recvmsg)(s.a, &r, 0);
    t.join();
    t.told("received", n);
    t.told("with room of", static_cast<long>(r.msg_controllen));
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&r)), sizeof fd);
    const one_fd own(fd);
    t.beside([&] {
        after_ms(3);
        HOOKED(write)(p.b, "y", 1);
    });
    t.told("read of it", HOOKED(read)(own.n, &into, 1));
    t.join();
}

POSIX_CASE(datagrams_keep_their_ends) {
    sockaddr_in at_a;
    sockaddr_in at_b;
    const one_fd a(bound(SOCK_DGRAM, at_a));
    const one_fd b(bound(SOCK_DGRAM, at_b));
    char got[16] = {};
    t.beside([&] {
        after_ms(4);
        HOOKED(sendto)(b.n, "one", 3, 0, as_address(at_a), sizeof at_a);
        HOOKED(sendto)(b.n, "four", 4, 0, as_address(at_a), sizeof at_a);
        HOOKED(sendto)(b.n, "", 0, 0, as_address(at_a), sizeof at_a);
    });
    sockaddr_in from{};
    socklen_t bytes = sizeof from;
    t.told("recvfrom", HOOKED(recvfrom)(a.n, got, sizeof got, 0, as_address(from), &bytes));
    t.told("from the other", from.sin_port == at_b.sin_port);
    t.told("cut off", HOOKED(__recvfrom_chk)(a.n, got, 2, 16, MSG_WAITALL, nullptr, nullptr));
    t.told("an empty one", HOOKED(recv)(a.n, got, 16, 0));
    t.join();
    t.beside([&] {
        char x[3][4] = {"aaa", "bb", "c"};
        mmsghdr all[3] = {};
        iovec v[3];
        for (unsigned i = 0; i < 3; ++i) {
            v[i] = {x[i], 3 - i};
            all[i].msg_hdr.msg_iov = &v[i];
            all[i].msg_hdr.msg_iovlen = 1;
            all[i].msg_hdr.msg_name = &at_a;
            all[i].msg_hdr.msg_namelen = sizeof at_a;
        }
        after_ms(4);
        HOOKED(sendmmsg)(b.n, all, 2, 0);
        after_ms(4);
        HOOKED(sendmmsg)(b.n, all + 2, 1, 0);
    });
    char into[3][8] = {};
    iovec v[3];
    mmsghdr all[3] = {};
    for (unsigned i = 0; i < 3; ++i) {
        v[i] = {into[i], 8};
        all[i].msg_hdr.msg_iov = &v[i];
        all[i].msg_hdr.msg_iovlen = 1;
    }
    t.told("all three", HOOKED(recvmmsg)(a.n, all, 3, 0, nullptr));
    for (const auto& m : all) t.told("of bytes", m.msg_len);
    t.told("none there", HOOKED(recvmmsg)(a.n, all, 3, MSG_DONTWAIT, nullptr));
    t.join();
    t.beside([&] {
        after_ms(4);
        HOOKED(sendto)(b.n, "one", 3, 0, as_address(at_a), sizeof at_a);
    });
    t.told("one is enough", HOOKED(recvmmsg)(a.n, all, 3, MSG_WAITFORONE, nullptr));
    t.join();
    timespec bad = {0, -1};
    t.told("no time", HOOKED(recvmmsg)(a.n, all, 3, 0, &bad));
    HOOKED(sendto)(b.n, "one", 3, 0, as_address(at_a), sizeof at_a);
    timespec none = {0, 1};
    t.told("the limit is looked at after one", HOOKED(recvmmsg)(a.n, all, 3, 0, &none));
    t.told("connect", HOOKED(connect)(b.n, as_address(at_a), sizeof at_a));
    t.told("then send", HOOKED(send)(b.n, "z", 1, 0));
    t.told("and it came", HOOKED(recv)(a.n, got, 16, 0));
    t.told("accept of it", HOOKED(accept)(a.n, nullptr, nullptr));
}

POSIX_CASE(connections_are_made_and_taken) {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    t.beside([&] {
        after_ms(4);
        const one_fd c(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
        t.told("connect", HOOKED(connect)(c.n, as_address(at), sizeof at));
        t.told("flags after it", HOOKED(fcntl)(c.n, F_GETFL, nullptr));
        t.told("once is enough", HOOKED(connect)(c.n, as_address(at), sizeof at));
        char byte = 0;
        t.told("read", HOOKED(read)(c.n, &byte, 1));
    });
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    const one_fd s(HOOKED(accept)(l.n, as_address(peer), &bytes));
    HOOKED(write)(s.n, "x", 1);
    t.join();  // the other side's results come first
    t.told("a descriptor", s.n >= 0);
    t.told("family", peer.sin_family);
    t.told("flags", HOOKED(fcntl)(s.n, F_GETFL, nullptr));

    t.beside([&] {
        const one_fd c(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
        HOOKED(connect)(c.n, as_address(at), sizeof at);
        after_ms(4);
    });
    const one_fd n(HOOKED(accept4)(l.n, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    t.join();
    t.told("flags of accept4", HOOKED(fcntl)(n.n, F_GETFL, nullptr) & O_NONBLOCK);
    t.told("and the other", HOOKED(fcntl)(n.n, F_GETFD, nullptr));
    char byte;
    after_ms(3);
    t.told("the end", HOOKED(recv)(n.n, &byte, 1, 0));
    set_timeout(l.n, SO_RCVTIMEO, 20);
    t.took("accept", milliseconds(18),
           [&] { t.told("accept", HOOKED(accept)(l.n, nullptr, nullptr)); });
    HOOKED(fcntl)(l.n, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("nobody", HOOKED(accept)(l.n, nullptr, nullptr));
    const one_fd silent(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    t.told("of one that does not listen", HOOKED(accept)(silent.n, nullptr, nullptr));
    t.told("bad flags", HOOKED(accept4)(silent.n, nullptr, nullptr, 1 << 30));
}

POSIX_CASE(a_look_at_all_of_it) {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    const one_fd c(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    t.told("connect", HOOKED(connect)(c.n, as_address(at), sizeof at));
    const one_fd s(HOOKED(accept)(l.n, nullptr, nullptr));
    t.beside([&] {
        for (const char* part : {"ab", "cd", "ef"}) {
            after_ms(4);
            HOOKED(send)(s.n, part, 2, 0);
        }
    });
    char got[8] = {};
    t.told("nothing urgent", HOOKED(recv)(c.n, got, 1, MSG_OOB));
    t.told("no error", HOOKED(recv)(c.n, got, 1, MSG_ERRQUEUE));
    t.told("a look at four", HOOKED(recv)(c.n, got, 4, MSG_PEEK | MSG_WAITALL));
    t.said("seen", got);
    t.told("all of six", HOOKED(recv)(c.n, got, 6, MSG_WAITALL));
    t.join();
    t.beside([&] {
        HOOKED(send)(s.n, "gh", 2, 0);
        after_ms(4);
        HOOKED(shutdown)(s.n, SHUT_WR);
    });
    t.told("a look at more than will come", HOOKED(recv)(c.n, got, 4, MSG_PEEK | MSG_WAITALL));
    t.join();
    t.told("and at what has come", HOOKED(recv)(c.n, got, 4, MSG_PEEK | MSG_WAITALL));
}

POSIX_CASE(a_connection_is_refused) {
    sockaddr_in at;
    {
        const one_fd gone(bound(SOCK_STREAM, at));
    }
    const one_fd c(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    t.told("connect", HOOKED(connect)(c.n, as_address(at), sizeof at));
    int error = -1;
    socklen_t bytes = sizeof error;
    t.told("getsockopt", HOOKED(getsockopt)(c.n, SOL_SOCKET, SO_ERROR, &error, &bytes));
    t.told("nothing left", error);
    t.told("again", HOOKED(connect)(c.n, as_address(at), sizeof at));
    sockaddr_un nowhere{};
    nowhere.sun_family = AF_UNIX;
    std::strcpy(nowhere.sun_path, "/nonexistent/socket");
    const one_fd u(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    t.told("a local one", HOOKED(connect)(u.n, as_address(nowhere), sizeof nowhere));
    t.told("too short", HOOKED(connect)(c.n, as_address(at), 1));
    t.told("no such family", HOOKED(socket)(-1, SOCK_STREAM, 0));
}

POSIX_CASE(a_local_socket_that_is_full_is_waited_for) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "weft-hook-%d-%p", ::getpid(),
                  static_cast<void*>(&t));
    const one_fd l(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    ::bind(l.n, as_address(at), sizeof at);
    ::listen(l.n, 0);
    const one_fd first(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    const one_fd second(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    t.told("first", HOOKED(connect)(first.n, as_address(at), sizeof at));
    t.beside([&] {
        after_ms(10);
        for (int i = 0; i < 2; ++i) HOOKED(close)(HOOKED(accept)(l.n, nullptr, nullptr));
    });
    t.told("second", HOOKED(connect)(second.n, as_address(at), sizeof at));
    t.join();
}

POSIX_CASE(messages_that_are_none) {
    auto s = fd_pair::sockets();
    msghdr* volatile nowhere = nullptr;
    t.told("sendmsg of none", HOOKED(sendmsg)(s.a, nowhere, 0));
    t.told("recvmsg of none", HOOKED(recvmsg)(s.a, nowhere, 0));
    if (!may_give_bad_lists) return;
    char c = 'x';
    iovec one = {&c, 1};
    msghdr m{};
    m.msg_iov = &one;
    m.msg_iovlen = (std::size_t{1} << 33) + 1;
    t.told("sendmsg of too many", HOOKED(sendmsg)(s.a, &m, 0));
    t.told("recvmsg of too many", HOOKED(recvmsg)(s.a, &m, 0));
    t.told("nothing was sent", HOOKED(recv)(s.b, &c, 1, MSG_DONTWAIT));
}

POSIX_CASE(shutdown_ends_a_read) {
    auto s = fd_pair::sockets();
    t.beside([&] {
        after_ms(4);
        HOOKED(shutdown)(s.a, SHUT_RDWR);
    });
    char c;
    t.told("read", HOOKED(read)(s.a, &c, 1));
    t.join();
    t.told("and at the other end", HOOKED(read)(s.b, &c, 1));
    t.told("write", HOOKED(write)(s.b, &c, 1));
}

// Two ends of a connection of TCP.
fd_pair tcp_pair() {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    const int a = HOOKED(socket)(AF_INET, SOCK_STREAM, 0);
    HOOKED(connect)(a, as_address(at), sizeof at);
    return {a, HOOKED(accept)(l.n, nullptr, nullptr)};
}
void reset(fd_pair& s) {
    const linger at_once = {1, 0};
    HOOKED(setsockopt)(s.b, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    s.close_b();
}

POSIX_CASE(an_error_after_a_part_is_the_next_call_s) {
    std::string much(20 << 20, 'x');
    char got[100] = {};
    const auto send_much = [&](const char* what, auto send) {
        auto s = tcp_pair();
        t.beside([&] {
            after_ms(30);
            HOOKED(read)(s.b, got, 10);
            reset(s);
        });
        const long n = send(s.a);
        t.join();
        t.said(what, n > 0 && n < static_cast<long>(much.size()) ? "a part" : "not a part");
        t.told("the next", HOOKED(send)(s.a, "x", 1, MSG_NOSIGNAL));
        t.told("the one after it", HOOKED(write)(s.a, "x", 1));
    };
    send_much("write", [&](int fd) { return HOOKED(write)(fd, much.data(), much.size()); });
    send_much("send", [&](int fd) { return HOOKED(send)(fd, much.data(), much.size(), 0); });
    send_much("sendmsg", [&](int fd) {
        iovec v[2] = {{much.data(), 1000}, {much.data(), much.size() - 1000}};
        msghdr m{};
        m.msg_iov = v;
        m.msg_iovlen = 2;
        return HOOKED(sendmsg)(fd, &m, 0);
    });
    for (const int look : {0, int{MSG_PEEK}}) {
        auto s = tcp_pair();
        t.beside([&] {
            after_ms(5);
            HOOKED(write)(s.b, "abc", 3);
            after_ms(20);
            reset(s);
        });
        t.told("all of a hundred", HOOKED(recv)(s.a, got, 100, MSG_WAITALL | look));
        t.join();
        if (look != 0) t.told("and these", HOOKED(read)(s.a, got, 100));
        t.told("then the error", HOOKED(read)(s.a, got, 1));
        t.told("and the end", HOOKED(read)(s.a, got, 1));
    }
}

POSIX_CASE(a_look_at_all_ends_with_what_there_is) {
    auto s = tcp_pair();
    char got[16];
    HOOKED(write)(s.b, "abc", 3);
    after_ms(2);
    set_timeout(s.a, SO_RCVTIMEO, 20);
    t.took("at the timeout", milliseconds(18),
           [&] { t.told("at the timeout", HOOKED(recv)(s.a, got, 10, MSG_PEEK | MSG_WAITALL)); });
    HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("not to wait", HOOKED(recv)(s.a, got, 10, MSG_PEEK | MSG_WAITALL));
    iovec v[2] = {{got, 2}, {got + 2, 14}};
    msghdr m{};
    m.msg_iov = v;
    m.msg_iovlen = 2;
    t.told("by a message", HOOKED(recvmsg)(s.a, &m, MSG_PEEK | MSG_WAITALL));
    t.told("and these", HOOKED(recv)(s.a, got, 10, MSG_WAITALL));
    t.told("none", HOOKED(recv)(s.a, got, 10, MSG_PEEK | MSG_WAITALL));
}

// A message with a descriptor.
void give(int to, std::string bytes) {
    const one_fd given(HOOKED(eventfd)(0, 0));
    iovec v = {bytes.data(), bytes.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr m{};
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    m.msg_control = room;
    m.msg_controllen = sizeof room;
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &given.n, sizeof(int));
    HOOKED(sendmsg)(to, &m, 0);
}
// All of so many bytes into so many buffers, and what came with them.
void take(posix_side& t, int from, std::size_t bytes, std::size_t room_bytes, int flags,
          std::size_t buffers = 1) {
    char got[16] = {};
    const std::size_t part = bytes / buffers;
    iovec v[4];
    for (std::size_t i = 0; i != buffers; ++i) v[i] = {got + i * part, part};
    alignas(cmsghdr) char room[256] = {};
    msghdr m{};
    m.msg_iov = v;
    m.msg_iovlen = buffers;
    m.msg_control = room_bytes != 0 ? room : nullptr;
    m.msg_controllen = room_bytes;
    t.told("recvmsg", HOOKED(recvmsg)(from, &m, MSG_WAITALL | flags));
    t.said("  bytes", got);
    t.told("  control", static_cast<long>(m.msg_controllen));
    t.told("  flags", m.msg_flags);
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
        t.told("  of type", c->cmsg_type);
        if (c->cmsg_type != SCM_RIGHTS) continue;
        int fd;
        std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
        t.told("  a descriptor", HOOKED(close)(fd));
    }
}

POSIX_CASE(descriptors_end_a_call_that_waits_for_all) {
    auto s = fd_pair::sockets();
    give(s.b, "a");
    give(s.b, "b");
    take(t, s.a, 2, 64, 0);
    take(t, s.a, 1, 64, 0);
    HOOKED(write)(s.b, "cd", 2);
    give(s.b, "e");
    HOOKED(write)(s.b, "f", 1);
    take(t, s.a, 4, 64, 0);
    take(t, s.a, 1, 64, 0);
    give(s.b, "g");
    HOOKED(write)(s.b, "h", 1);
    char got[4] = {};
    t.told("those that are not taken end it too", HOOKED(recv)(s.a, got, 2, MSG_WAITALL));
    t.told("and the rest", HOOKED(recv)(s.a, got, 1, MSG_WAITALL));
    const int on = 1;
    HOOKED(setsockopt)(s.a, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    t.beside([&] {
        HOOKED(write)(s.b, "i", 1);
        after_ms(5);
        HOOKED(write)(s.b, "j", 1);
    });
    t.told("credentials do not", HOOKED(recv)(s.a, got, 2, MSG_WAITALL));
    t.join();
    t.beside([&] {
        HOOKED(write)(s.b, "k", 1);
        after_ms(5);
        give(s.b, "l");
    });
    take(t, s.a, 3, 128, 0);
    t.join();
}

POSIX_CASE(descriptors_come_with_all_buffers_of_their_message) {
    auto s = fd_pair::sockets();
    HOOKED(write)(s.b, "a", 1);
    t.beside([&] {
        after_ms(5);
        give(s.b, "bcdefghijkl");
    });
    take(t, s.a, 8, 64, 0, 4);
    t.join();
    take(t, s.a, 4, 64, 0, 2);
}

struct two_messages {
    char room[2][8] = {};
    iovec v[2] = {{room[0], 8}, {room[1], 8}};
    mmsghdr all[2] = {};
    two_messages() {
        for (int i = 0; i < 2; ++i) {
            all[i].msg_hdr.msg_iov = &v[i];
            all[i].msg_hdr.msg_iovlen = 1;
        }
    }
};

POSIX_CASE(the_first_of_several_messages_is_enough) {
    auto s = fd_pair::sockets(SOCK_DGRAM);
    two_messages m;
    HOOKED(write)(s.b, "abc", 3);
    timespec limit = {5, 0};
    t.told("with a limit", HOOKED(recvmmsg)(s.a, m.all, 2, MSG_WAITFORONE, &limit));
    t.told("of which the rest is told", limit.tv_sec);
    HOOKED(write)(s.b, "abc", 3);
    HOOKED(write)(s.b, "defg", 4);
    t.told("those that are there", HOOKED(recvmmsg)(s.a, m.all, 2, MSG_WAITFORONE, &limit));
    t.told("of bytes", m.all[1].msg_len);
    set_timeout(s.a, SO_RCVTIMEO, 600);
    t.beside([&] {
        for (int i = 0; i < 2; ++i) {
            after_ms(350);
            HOOKED(write)(s.b, "x", 1);
        }
    });
    t.told("each has the timeout", HOOKED(recvmmsg)(s.a, m.all, 2, 0, nullptr));
    t.join();
    limit = {7, 5};
    t.told("none", HOOKED(recvmmsg)(s.a, m.all, 2, 0, &limit));
    t.told("the limit is as it was", limit.tv_sec * 10 + limit.tv_nsec);
    auto b = fd_pair::sockets();
    t.beside([&] {
        for (int i = 0; i < 4; ++i) {
            after_ms(2);
            HOOKED(write)(b.b, "wxyz", 4);
        }
    });
    t.told("all of each", HOOKED(recvmmsg)(b.a, m.all, 2, MSG_WAITALL, nullptr));
    t.told("of bytes", m.all[0].msg_len * 10 + m.all[1].msg_len);
    t.join();
}

POSIX_CASE(a_part_of_a_message_is_the_last) {
    auto s = fd_pair::sockets();
    std::string much(2 << 20, 'a');
    set_timeout(s.a, SO_SNDTIMEO, 20);
    two_messages m;
    m.v[0] = {much.data(), much.size()};
    t.told("sendmmsg", HOOKED(sendmmsg)(s.a, m.all, 2, 0));
    t.told("a part", m.all[0].msg_len > 0 && m.all[0].msg_len < much.size());
    HOOKED(shutdown)(s.a, SHUT_WR);
    long of_another = 0;
    for (long n; (n = HOOKED(read)(s.b, much.data(), much.size())) > 0;)
        of_another += n - std::count(much.data(), much.data() + n, 'a');
    t.told("and nothing after it", of_another);
    t.told("of a number that is not open", HOOKED(sendmmsg)(-1, m.all, 0, 0));
}

POSIX_CASE(a_socket_of_messages_that_is_shut_down_gives_none) {
    auto s = fd_pair::sockets(SOCK_DGRAM);
    char got[8];
    const auto receive_all_ways = [&] {
        two_messages m;
        t.told("recv", HOOKED(recv)(s.a, got, 8, 0));
        t.told("read", HOOKED(read)(s.a, got, 8));
        t.told("recvmsg", HOOKED(recvmsg)(s.a, &m.all[0].msg_hdr, 0));
        t.told("recvmmsg", HOOKED(recvmmsg)(s.a, m.all, 2, 0, nullptr));
        t.told("not to wait", HOOKED(recv)(s.a, got, 8, MSG_DONTWAIT));
    };
    t.beside([&] {
        after_ms(5);
        HOOKED(shutdown)(s.a, SHUT_RD);
    });
    t.told("while it waits", HOOKED(recv)(s.a, got, 8, 0));
    t.join();
    receive_all_ways();
    HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    receive_all_ways();
}

POSIX_CASE(an_accept_that_cannot_be_fails_at_once) {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    t.told("a flag that there is not", HOOKED(accept4)(l.n, nullptr, nullptr, 0x4000000));
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit few = before;
    few.rlim_cur = 200;
    ::setrlimit(RLIMIT_NOFILE, &few);
    std::vector<int> all;
    for (int fd; (fd = HOOKED(dup)(l.n)) >= 0;) all.push_back(fd);
    t.told("no number is left", HOOKED(accept)(l.n, nullptr, nullptr));
    for (const int fd : all) HOOKED(close)(fd);
    ::setrlimit(RLIMIT_NOFILE, &before);
}

POSIX_CASE(a_connection_that_is_being_made_is_waited_for) {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    const one_fd c(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    HOOKED(fcntl)(c.n, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("begun", HOOKED(connect)(c.n, as_address(at), sizeof at));
    HOOKED(fcntl)(c.n, F_SETFL, nullptr);
    t.told("ended", HOOKED(connect)(c.n, as_address(at), sizeof at));
    t.told("is", HOOKED(connect)(c.n, as_address(at), sizeof at));
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    t.told("undone", HOOKED(connect)(c.n, &none, sizeof none));
    t.told("done again", HOOKED(connect)(c.n, as_address(at), sizeof at));
}

}  // namespace
