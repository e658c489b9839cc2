// Cases of what opens, closes and changes descriptors, and of files.

#include <gtest/gtest.h>
#include <linux/close_range.h>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;

POSIX_CASE(doubles_are_the_same_file) {
    auto p = fd_pair::pipe();
    const one_fd a(HOOKED(dup)(p.a));
    const one_fd b(HOOKED(fcntl)(p.a, F_DUPFD, reinterpret_cast<void*>(300)));
    const one_fd c(HOOKED(fcntl)(p.a, F_DUPFD_CLOEXEC, reinterpret_cast<void*>(300)));
    t.told("at least", b.n >= 300 && c.n > b.n);
    t.told("flags", HOOKED(fcntl)(b.n, F_GETFD, nullptr));
    t.told("flags", HOOKED(fcntl)(c.n, F_GETFD, nullptr));
    t.told("on itself", HOOKED(dup2)(a.n, a.n) == a.n);
    t.told("on itself, as dup3", HOOKED(dup3)(a.n, a.n, 0));
    t.told("dup3", HOOKED(dup3)(p.a, a.n, O_CLOEXEC) == a.n);
    t.told("flags", HOOKED(fcntl)(a.n, F_GETFD, nullptr));
    t.told("bad flags", HOOKED(dup3)(p.a, a.n, 1));
    t.told("to no number", HOOKED(dup2)(p.a, -1));
    t.beside([&] {
        after_ms(4);
        HOOKED(write)(p.b, "xyz", 3);
    });
    char byte;
    t.told("read", HOOKED(read)(a.n, &byte, 1));
    t.told("close", HOOKED(close)(p.a));
    p.a = -1;
    t.told("read of another", HOOKED(read)(b.n, &byte, 1));
    t.told("and another", HOOKED(read)(c.n, &byte, 1));
    t.join();
    // A descriptor that becomes another file.
    auto s = fd_pair::sockets();
    t.told("dup2", HOOKED(dup2)(s.a, b.n) == b.n);
    t.beside([&] {
        after_ms(4);
        HOOKED(send)(s.b, "q", 1, 0);
    });
    t.told("read of what it is now", HOOKED(read)(b.n, &byte, 1));
    t.said("got", std::string_view(&byte, 1));
    t.join();
}

POSIX_CASE(numbers_are_used_again) {
    for (int i = 0; i < 3; ++i) {
        auto p = fd_pair::pipe();
        char byte;
        t.beside([&] {
            after_ms(2);
            HOOKED(write)(p.b, "x", 1);
        });
        t.told("of a pipe", HOOKED(read)(p.a, &byte, 1));
        t.join();
        p.close_a();
        p.close_b();
        auto s = fd_pair::sockets();
        t.beside([&] {
            after_ms(2);
            HOOKED(write)(s.b, "y", 1);
        });
        t.told("of a socket", HOOKED(read)(s.a, &byte, 1));
        t.join();
        t.told("close", HOOKED(close)(s.a));
        t.told("once", HOOKED(close)(s.a));
        t.told("read", HOOKED(read)(s.a, &byte, 1));
        s.a = -1;
    }
}

POSIX_CASE(a_range_is_closed) {
    auto p = fd_pair::pipe();
    const int a = HOOKED(fcntl)(p.a, F_DUPFD, reinterpret_cast<void*>(500));
    const int b = HOOKED(fcntl)(p.a, F_DUPFD, reinterpret_cast<void*>(502));
    t.told("only marked", HOOKED(close_range)(500, 510, CLOSE_RANGE_CLOEXEC));
    t.told("flags", HOOKED(fcntl)(a, F_GETFD, nullptr));
    t.told("closed", HOOKED(close_range)(500, 510, 0));
    t.told("one", HOOKED(fcntl)(a, F_GETFD, nullptr));
    t.told("the other", HOOKED(fcntl)(b, F_GETFD, nullptr));
    t.told("backwards", HOOKED(close_range)(510, 500, 0));
    t.told("what was there before", HOOKED(fcntl)(p.a, F_GETFD, nullptr));
}

POSIX_CASE(a_stream_of_stdio_is_closed) {
    auto s = fd_pair::sockets();
    FILE* const f = ::fdopen(HOOKED(dup)(s.a), "r+");
    char byte;
    t.beside([&] {
        after_ms(3);
        HOOKED(write)(s.b, "x", 1);
    });
    t.told("read", HOOKED(read)(::fileno(f), &byte, 1));
    t.join();
    ::fputs("text", f);
    t.told("fclose", HOOKED(fclose)(f));
    char got[8] = {};
    t.told("what it held", HOOKED(read)(s.b, got, 8));
    t.said("is", got);
}

POSIX_CASE(a_file_is_a_file) {
    char path[] = "/tmp/weft-hook-XXXXXX";
    const one_fd made(::mkstemp(path));
    const one_fd f(HOOKED(open)(path, O_RDWR, 0));
    t.told("write", HOOKED(write)(f.n, "0123456789", 10));
    t.told("fsync", HOOKED(fsync)(f.n));
    t.told("fdatasync", HOOKED(fdatasync)(f.n));
    t.told("pwrite", HOOKED(pwrite)(f.n, "ab", 2, 2));
    t.told("pwrite64", HOOKED(pwrite64)(f.n, "c", 1, 4));
    char got[32] = {};
    t.told("at the end", HOOKED(read)(f.n, got, 4));
    t.told("pread", HOOKED(pread)(f.n, got, 4, 1));
    t.told("pread64", HOOKED(pread64)(f.n, got + 4, 4, 3));
    t.told("__pread_chk", HOOKED(__pread_chk)(f.n, got + 8, 2, 0, 2));
    t.told("__pread64_chk", HOOKED(__pread64_chk)(f.n, got + 10, 2, 8, 2));
    t.said("got", got);
    iovec v[2] = {{got, 3}, {got + 3, 5}};
    t.told("preadv", HOOKED(preadv)(f.n, v, 2, 0));
    t.told("preadv64", HOOKED(preadv64)(f.n, v, 2, 5));
    t.told("pwritev", HOOKED(pwritev)(f.n, v, 2, 10));
    t.told("pwritev64", HOOKED(pwritev64)(f.n, v, 1, 20));
    const one_fd g(HOOKED(open64)(path, O_RDONLY | O_CLOEXEC, 0));
    t.told("all of it", HOOKED(read)(g.n, got, sizeof got));
    t.said("got", std::string_view(got, 20));
    t.told("read only", HOOKED(write)(g.n, "x", 1));
    t.told("before the beginning", HOOKED(pread)(g.n, got, 1, -1));
    t.told("of a pipe", HOOKED(pread)(fd_pair::pipe().a, got, 1, 0));
    const one_fd folder(HOOKED(openat)(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY, 0));
    t.told("read of a folder", HOOKED(read)(folder.n, got, 1));
    const one_fd h(HOOKED(openat64)(folder.n, path + 5, O_RDONLY, 0));
    t.told("openat", h.n >= 0);
    t.told("no such file", HOOKED(open)("/tmp/no/such/file", O_RDONLY, 0));
    t.told("not anew", HOOKED(open)(path, O_CREAT | O_EXCL | O_RDWR, 0600));
    ::unlink(path);
    const one_fd n(HOOKED(open)(path, O_CREAT | O_EXCL | O_RDWR, 0640));
    struct ::stat s{};
    ::fstat(n.n, &s);
    t.told("mode", s.st_mode & 0777);
    ::unlink(path);
}

POSIX_CASE(a_lock_of_a_file) {
    char path[] = "/tmp/weft-hook-XXXXXX";
    const one_fd f(::mkstemp(path));
    const one_fd g(HOOKED(open)(path, O_RDWR, 0));
    ::unlink(path);
    struct ::flock l{};
    l.l_type = F_WRLCK;
    t.told("alone", HOOKED(fcntl)(f.n, F_SETLKW, &l));
    t.told("of the open file", HOOKED(fcntl)(f.n, F_UNLCK, nullptr) == 1234);
    l.l_type = F_UNLCK;
    t.told("free", HOOKED(fcntl)(f.n, F_SETLK, &l));
    l.l_type = F_WRLCK;
    t.told("by its file", HOOKED(fcntl)(f.n, F_OFD_SETLK, &l));
    t.beside([&] {
        after_ms(8);
        struct ::flock u{};
        u.l_type = F_UNLCK;
        HOOKED(fcntl)(f.n, F_OFD_SETLK, &u);
    });
    struct ::flock m{};
    m.l_type = F_WRLCK;
    t.told("waits", HOOKED(fcntl)(g.n, F_OFD_SETLKW, &m));
    t.join();
    t.told("no such command", HOOKED(fcntl)(f.n, 4242, nullptr));
    auto p = fd_pair::pipe();
    t.told("how large a pipe is", HOOKED(fcntl)(p.a, F_GETPIPE_SZ, nullptr));
    t.told("owner", HOOKED(fcntl)(p.a, F_GETOWN, nullptr));
}

}  // namespace
