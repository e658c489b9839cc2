// Cases of the calls that move bytes from one descriptor to another, and of preadv2 and its family.

#include <gtest/gtest.h>
#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;
using std::chrono::milliseconds;

int file_of(const std::string& text) {
    char path[] = "/tmp/weft-splice-XXXXXX";
    const int fd = ::mkstemp(path);
    ::unlink(path);
    HOOKED(write)(fd, text.data(), text.size());
    ::lseek(fd, 0, SEEK_SET);
    return fd;
}
std::string all_of(std::size_t bytes) {
    std::string s(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i) s[i] = static_cast<char>('a' + i * 7 / 5 % 26);
    return s;
}
// Reads to the end, in small pieces.
std::string rest_of(int fd) {
    std::string all;
    char part[3000];
    for (long n; (n = HOOKED(read)(fd, part, sizeof part)) > 0;)
        all.append(part, static_cast<std::size_t>(n));
    return all;
}
// Of TCP.
fd_pair connection() {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    const int from = HOOKED(socket)(AF_INET, SOCK_STREAM, 0);
    HOOKED(connect)(from, as_address(at), sizeof at);
    return {from, HOOKED(accept)(l.n, nullptr, nullptr)};
}
long position(int fd) { return ::lseek(fd, 0, SEEK_CUR); }

POSIX_CASE(a_file_is_sent_to_a_socket) {
    const std::string text = all_of(1'500'000);
    const one_fd file(file_of(text));
    for (const int family : {AF_UNIX, AF_INET}) {
        auto s = family == AF_UNIX ? fd_pair::sockets() : connection();
        std::string got;
        t.beside([&] { got = rest_of(s.b); });
        off_t from = 10;
        t.told("sendfile", HOOKED(sendfile)(s.a, file.n, &from, text.size()));
        t.told("up to", from);
        t.told("the file stands", position(file.n));
        off64_t wide = 1;
        t.told("sendfile64", HOOKED(sendfile64)(s.a, file.n, &wide, 100'000));
        t.told("up to", wide);
        t.told("without an offset", HOOKED(sendfile)(s.a, file.n, nullptr, 200'000));
        t.told("the file stands", position(file.n));
        t.told("none", HOOKED(sendfile)(s.a, file.n, nullptr, 0));
        ::lseek(file.n, 0, SEEK_END);
        t.told("at its end", HOOKED(sendfile)(s.a, file.n, nullptr, 10));
        ::lseek(file.n, 0, SEEK_SET);
        s.close_a();
        t.join();
        t.told("as it was sent",
               got == text.substr(10) + text.substr(1, 100'000) + text.substr(0, 200'000));
    }
    auto s = fd_pair::sockets();
    set_timeout(s.a, SO_SNDTIMEO, 20);
    off_t from = 0;
    const long n = HOOKED(sendfile)(s.a, file.n, &from, text.size());
    t.told("a part at the timeout", n > 0 && n < static_cast<long>(text.size()));
    t.told("and so far", from == n);
    t.told("nothing at the timeout", HOOKED(sendfile)(s.a, file.n, &from, 10));
    HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("not to wait", HOOKED(sendfile)(s.a, file.n, &from, 10));
    s.close_b();
    t.told("nobody reads", HOOKED(sendfile)(s.a, file.n, &from, 10));
    auto p = fd_pair::pipe();
    t.told("of a pipe", HOOKED(sendfile)(s.a, p.a, nullptr, 10));
    t.told("of a socket", HOOKED(sendfile)(s.a, s.a, nullptr, 10));
    t.told("of what is not open", HOOKED(sendfile)(s.a, -1, nullptr, 10));
    t.told("to what is not open", HOOKED(sendfile)(-1, file.n, nullptr, 10));
    from = -1;
    t.told("from before its beginning", HOOKED(sendfile)(p.b, file.n, &from, 10));
}

POSIX_CASE(a_file_is_sent_to_a_pipe_and_a_file) {
    const std::string text = all_of(300'000);
    const one_fd file(file_of(text));
    auto p = fd_pair::pipe();
    std::string got;
    t.beside([&] {
        after_ms(5);
        got = rest_of(p.a);
    });
    std::size_t sent = 0;
    while (sent < text.size()) {
        const long n = HOOKED(sendfile)(p.b, file.n, nullptr, text.size() - sent);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
    }
    p.close_b();
    t.join();
    t.told("as it was sent", got == text);
    t.told("the file stands", position(file.n));
    const one_fd other(file_of(""));
    off_t from = 5;
    t.told("to a file", HOOKED(sendfile)(other.n, file.n, &from, 1000));
    off64_t at = 0;
    off64_t to = 2000;
    t.told("of a file", HOOKED(copy_file_range)(file.n, &at, other.n, &to, 1000, 0));
    t.told("up to", at + to);
    auto q = fd_pair::pipe();
    t.told("of no file", HOOKED(copy_file_range)(q.a, nullptr, other.n, nullptr, 1, 0));
}

POSIX_CASE(bytes_are_spliced_through_a_pipe) {
    const std::string text = all_of(400'000);
    auto in = fd_pair::sockets();
    auto out = fd_pair::sockets();
    auto p = fd_pair::pipe();
    std::string got;
    t.beside([&] {
        for (std::size_t at = 0; at < text.size(); at += 50'000) {
            HOOKED(write)(in.a, text.data() + at, 50'000);
            after_ms(1);
        }
        in.close_a();
    });
    t.beside([&] {
        after_ms(3);
        got = rest_of(out.b);
    });
    t.beside([&] {
        for (;;) {
            const long n = HOOKED(splice)(p.a, nullptr, out.a, nullptr, 1 << 20, 0);
            if (n <= 0) {
                t.told("the end of the pipe", n);
                break;
            }
        }
        out.close_a();
    });
    long n;
    do n = HOOKED(splice)(in.b, nullptr, p.b, nullptr, 1 << 20, SPLICE_F_MOVE);
    while (n > 0);
    p.close_b();
    t.join();
    t.told("the end of the socket", n);
    t.told("as it was sent", got == text);
}

POSIX_CASE(a_splice_waits_for_its_ends) {
    auto in = fd_pair::sockets();
    auto p = fd_pair::pipe();
    const auto none = SPLICE_F_NONBLOCK;
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(in.a, "hello", 5);
    });
    t.told("not to wait", HOOKED(splice)(in.b, nullptr, p.b, nullptr, 100, none));
    t.told("to wait", HOOKED(splice)(in.b, nullptr, p.b, nullptr, 100, 0));
    t.join();
    set_timeout(in.b, SO_RCVTIMEO, 15);
    t.told("the socket's timeout", HOOKED(splice)(in.b, nullptr, p.b, nullptr, 100, 0));
    auto q = fd_pair::pipe();
    t.told("tee", HOOKED(tee)(p.a, q.b, 100, 0));
    t.told("from one to another", HOOKED(splice)(p.a, nullptr, q.b, nullptr, 3, 0));
    t.told("not to wait", HOOKED(splice)(p.a, nullptr, q.b, nullptr, 2, none));
    t.told("nothing to see", HOOKED(tee)(p.a, q.b, 100, none));
    t.told("nothing to take", HOOKED(splice)(p.a, nullptr, q.b, nullptr, 2, none));
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(p.b, "xyz", 3);
    });
    t.told("seen when it comes", HOOKED(tee)(p.a, q.b, 100, 0));
    t.join();
    char got[32] = {};
    t.told("read", HOOKED(read)(q.a, got, sizeof got));
    t.said("of both", got);
    const one_fd file(file_of("0123456789"));
    off64_t at = 4;
    t.told("of a file", HOOKED(splice)(file.n, &at, q.b, nullptr, 3, 0));
    t.told("up to", at);
    t.told("to a file", HOOKED(splice)(q.a, nullptr, file.n, &at, 3, 0));
    t.told("up to", at);
    t.told("nothing for a file", HOOKED(splice)(q.a, nullptr, file.n, &at, 3, none));
    t.told("no offset in a pipe", HOOKED(splice)(q.a, &at, file.n, nullptr, 3, 0));
    t.told("none is a pipe", HOOKED(splice)(in.a, nullptr, in.b, nullptr, 3, 0));
    t.told("one is not open", HOOKED(splice)(-1, nullptr, q.b, nullptr, 3, 0));
    t.told("into itself", HOOKED(splice)(q.a, nullptr, q.b, nullptr, 3, 0));
    HOOKED(fcntl)(p.b, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("O_NONBLOCK of one is that of both", HOOKED(splice)(q.a, nullptr, p.b, nullptr, 3, 0));
}

POSIX_CASE(a_splice_is_refused_before_it_waits) {
    const auto p = fd_pair::pipe();
    const auto s = fd_pair::sockets();
    const one_fd timer(HOOKED(timerfd_create)(CLOCK_MONOTONIC, 0));
    const one_fd counter(HOOKED(eventfd)(0, 0));
    t.told("into the end that is read", HOOKED(splice)(s.a, nullptr, p.a, nullptr, 10, 0));
    t.told("of the end that is written", HOOKED(splice)(p.b, nullptr, s.a, nullptr, 10, 0));
    for (const int fd : {timer.n, counter.n}) {
        t.told("of what is not read so", HOOKED(splice)(fd, nullptr, p.b, nullptr, 10, 0));
        t.told("into what is not written so", HOOKED(splice)(p.a, nullptr, fd, nullptr, 10, 0));
    }
    auto q = fd_pair::pipe();
    q.close_a();
    t.told("into a pipe that nobody reads", HOOKED(splice)(s.a, nullptr, q.b, nullptr, 10, 0));
    auto r = fd_pair::pipe();
    r.close_b();
    char much[4096];
    while (HOOKED(send)(s.a, much, sizeof much, MSG_DONTWAIT) > 0) {
    }
    t.told("of a pipe that nobody writes", HOOKED(splice)(r.a, nullptr, s.a, nullptr, 10, 0));
    sockaddr_in listens;
    const one_fd l(bound(SOCK_STREAM, listens));
    t.told("of a listener", HOOKED(splice)(l.n, nullptr, p.b, nullptr, 10, 0));
    HOOKED(write)(p.b, "x", 1);
    t.told("into a listener", HOOKED(splice)(p.a, nullptr, l.n, nullptr, 10, 0));
    const one_fd file(file_of("0123456789"));
    off_t at = 0;
    t.told("a file to a counter", HOOKED(sendfile)(counter.n, file.n, &at, 8));
    t.told("a file to a timer", HOOKED(sendfile)(timer.n, file.n, nullptr, 8));
    const one_fd null(HOOKED(open)("/dev/null", O_RDONLY, 0));
    const one_fd zero(HOOKED(open)("/dev/zero", O_RDONLY, 0));
    const auto d = fd_pair::sockets(SOCK_DGRAM);
    t.told("what is not read so", HOOKED(sendfile)(d.a, null.n, nullptr, 8));
    t.told("what is", HOOKED(sendfile)(d.a, zero.n, nullptr, 8));
    t.told("to the end that is read", HOOKED(sendfile)(p.a, file.n, nullptr, 8));
    t.told("none of what is not open", HOOKED(sendfile)(p.b, -1, nullptr, 0));
    t.told("a counter to a pipe", HOOKED(sendfile)(p.b, counter.n, nullptr, 8));
    t.told("a socket from a place", HOOKED(sendfile)(p.b, s.b, &at, 8));
    t.told("a pipe to a pipe", HOOKED(sendfile)(p.b, q.b, nullptr, 8));
    t.told("a pipe to a pipe", HOOKED(sendfile)(p.b, p.a, nullptr, 8));
    HOOKED(fcntl)(d.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    HOOKED(shutdown)(d.a, SHUT_RD);
    t.told("of what is over and not to wait", HOOKED(splice)(d.a, nullptr, p.b, nullptr, 10, 0));
}

// A pipe that was spliced from has no attempt any more, also where there was nothing to splice.
POSIX_CASE(a_splice_of_nothing_is_one) {
    const auto p = fd_pair::pipe();
    const auto s = fd_pair::sockets();
    t.told("splice", HOOKED(splice)(p.a, nullptr, s.a, nullptr, 10, SPLICE_F_NONBLOCK));
    char c;
    iovec one = {&c, 1};
    t.told("preadv2", HOOKED(preadv2)(p.a, &one, 1, -1, RWF_NOWAIT));
}

// A read would find bytes there, or refuse it by another error. A file without blocks is sent.
POSIX_CASE(what_is_not_read_for_a_pipe_is_not_sent) {
    const std::string name = "/weft-splice-" + std::to_string(::getpid());
    mq_attr a{};
    a.mq_maxmsg = 2;
    a.mq_msgsize = 8;
    const one_fd queue(
        static_cast<int>(HOOKED(mq_open)(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &a)));
    ::mq_unlink(name.c_str());
    const one_fd folder(HOOKED(open)("/tmp", O_RDONLY | O_DIRECTORY, 0));
    const one_fd hole(HOOKED(memfd_create)("weft-splice", 0));
    t.told("of no blocks", ::ftruncate(hole.n, 100));
    const auto s = fd_pair::sockets();
    for (const int fd : {queue.n, folder.n, hole.n}) {
        off_t at = 0;
        t.told("from a place", HOOKED(sendfile)(s.a, fd, &at, 5000));
        t.told("up to", at);
        t.told("from where it stands", HOOKED(sendfile)(s.a, fd, nullptr, 5000));
    }
}

// O_NONBLOCK is each end's own, and the flag the pipe's.
POSIX_CASE(a_splice_waits_for_the_end_that_may_be_waited_for) {
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM})
        for (const bool by_flag : {true, false}) {
            const auto s = fd_pair::sockets(type);
            const auto p = fd_pair::pipe(by_flag ? 0 : O_NONBLOCK);
            t.beside([&] {
                after_ms(10);
                HOOKED(write)(s.a, "hello", 5);
            });
            t.told("into a pipe", HOOKED(splice)(s.b, nullptr, p.b, nullptr, 100,
                                                 by_flag ? SPLICE_F_NONBLOCK : 0));
            t.join();
        }
    // A message stays one, however long it is.
    const auto s = fd_pair::sockets(SOCK_SEQPACKET);
    const auto p = fd_pair::pipe();
    const std::string text = all_of(20'000);
    HOOKED(write)(p.b, text.data(), text.size());
    t.told("out of a pipe", HOOKED(splice)(p.a, nullptr, s.a, nullptr, 100'000, 0));
    std::string got(text.size() + 1, 0);
    t.told("one message", HOOKED(recv)(s.b, got.data(), got.size(), 0));
    // What comes from a socket is sent to a pipe when it comes.
    const auto b = fd_pair::sockets();
    t.beside([&] {
        after_ms(10);
        HOOKED(write)(b.a, "hello", 5);
    });
    t.told("sendfile of a socket", HOOKED(sendfile)(p.b, b.b, nullptr, 100));
    t.join();
    // A pipe that is full is waited for, though nothing is sent.
    const auto q = fd_pair::pipe();
    const one_fd file(file_of("0123456789"));
    HOOKED(fcntl)(q.b, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    while (HOOKED(write)(q.b, text.data(), 4096) > 0) {
    }
    HOOKED(fcntl)(q.b, F_SETFL, nullptr);
    bool is_taken = false;
    t.beside([&] {
        after_ms(10);
        is_taken = true;
        HOOKED(read)(q.a, got.data(), 8192);
    });
    t.told("nothing", HOOKED(sendfile)(q.b, file.n, nullptr, 0));
    t.told("when there was room", is_taken);
    t.join();
}

volatile std::sig_atomic_t broken_pipes = 0;

// The system sends it step by step, and an error that follows one is the next one's.
POSIX_CASE(a_file_that_is_sent_in_steps_breaks_a_pipe) {
    struct sigaction a{};
    struct sigaction before{};
    a.sa_handler = [](int) { broken_pipes = broken_pipes + 1; };
    HOOKED(sigaction)(SIGPIPE, &a, &before);
    broken_pipes = 0;
    const fd_pair s = connection();
    HOOKED(shutdown)(s.b, SHUT_RDWR);
    const one_fd zero(HOOKED(open)("/dev/zero", O_RDONLY, 0));
    t.told("has sent some", HOOKED(sendfile)(s.a, zero.n, nullptr, 70'000) > 0);
    t.told("signals", broken_pipes);
    HOOKED(sigaction)(SIGPIPE, &before, nullptr);
}

POSIX_CASE(a_splice_ends_at_the_urgent_byte) {
    const fd_pair s = connection();
    const fd_pair p = fd_pair::pipe();
    HOOKED(send)(s.a, "abcU", 4, MSG_OOB);
    after_ms(20);
    t.told("up to it", HOOKED(splice)(s.b, nullptr, p.b, nullptr, 100, 0));
    t.told("at it", HOOKED(splice)(s.b, nullptr, p.b, nullptr, 100, 0));
    HOOKED(write)(s.a, "def", 3);
    after_ms(20);
    t.told("with more behind it", HOOKED(splice)(s.b, nullptr, p.b, nullptr, 100, 0));
}

// It takes what is there, however little.
// More than poll calls room: the timeout is for one that would wait.
POSIX_CASE(a_splice_fills_a_local_socket_as_long_as_there_is_room) {
    auto s = fd_pair::sockets();
    auto p = fd_pair::pipe(O_NONBLOCK);
    const timeval second = {1, 0};
    HOOKED(setsockopt)(s.b, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
    const std::string much(65536, 'a');
    t.told("given", HOOKED(write)(p.b, much.data(), much.size()));
    t.told("taken", HOOKED(splice)(p.a, nullptr, s.b, nullptr, 70000, 0));
    std::string got(much.size(), 0);
    t.told("all", HOOKED(recv)(s.a, got.data(), got.size(), MSG_DONTWAIT));
    t.told("as it was given", got == much);
}

POSIX_CASE(a_splice_does_not_look_at_low_water) {
    for (const int family : {AF_UNIX, AF_INET}) {
        auto s = family == AF_UNIX ? fd_pair::sockets() : connection();
        const fd_pair p = fd_pair::pipe();
        const int least = 5;
        HOOKED(setsockopt)(s.b, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
        HOOKED(write)(s.a, "abc", 3);
        if (family == AF_INET) after_ms(20);
        t.beside([&] {
            after_ms(500);
            HOOKED(write)(s.a, "def", 3);
        });
        t.told("splice", HOOKED(splice)(s.b, nullptr, p.b, nullptr, 100, 0));
        t.join();
    }
}

POSIX_CASE(memory_is_given_to_a_pipe) {
    auto p = fd_pair::pipe();
    const std::string text = all_of(200'000);
    std::string got;
    t.beside([&] {
        after_ms(5);
        got = rest_of(p.a);
    });
    std::size_t given = 0;
    while (given < text.size()) {
        const iovec v = {const_cast<char*>(text.data()) + given, text.size() - given};
        const long n = HOOKED(vmsplice)(p.b, &v, 1, 0);
        if (n <= 0) break;
        given += static_cast<std::size_t>(n);
    }
    p.close_b();
    t.join();
    t.told("as it was given", got == text);
    auto q = fd_pair::pipe();
    char into[4] = {};
    const iovec v = {into, 4};
    t.told("nothing there", HOOKED(vmsplice)(q.a, &v, 1, SPLICE_F_NONBLOCK));
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(q.b, "abc", 3);
    });
    t.told("taken", HOOKED(vmsplice)(q.a, &v, 1, 0));
    t.join();
    t.told("of no pipe", HOOKED(vmsplice)(-1, &v, 1, 0));
}

POSIX_CASE(buffers_are_read_with_flags) {
    const one_fd file(file_of("0123456789"));
    char a[4] = {};
    char b[4] = {};
    iovec v[2] = {{a, 3}, {b, 3}};
    t.told("preadv2", HOOKED(preadv2)(file.n, v, 2, 2, 0));
    t.said("first", a);
    t.told("from where it stands", HOOKED(preadv64v2)(file.n, v, 2, -1, RWF_HIPRI));
    t.told("it stands", position(file.n));
    t.told("pwritev2", HOOKED(pwritev2)(file.n, v, 2, 1, RWF_DSYNC));
    t.told("pwritev64v2", HOOKED(pwritev64v2)(file.n, v, 2, -1, 0));
    t.told("a flag that there is not", HOOKED(preadv2)(file.n, v, 2, -1, 1 << 20));
    auto p = fd_pair::pipe();
    t.told("not to wait", HOOKED(preadv2)(p.a, v, 2, -1, RWF_NOWAIT) == -1);
    t.told("no place in a pipe", HOOKED(preadv2)(p.a, v, 2, 3, 0));
    t.beside([&] {
        after_ms(5);
        HOOKED(pwritev2)(p.b, v, 2, -1, 0);
    });
    t.told("waited for", HOOKED(preadv2)(p.a, v, 2, -1, 0));
    t.join();
    t.told("none", HOOKED(preadv2)(p.a, v, 0, -1, 0));
}

}  // namespace
