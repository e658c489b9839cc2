// posix_case: a piece of a program that makes system calls and records their results. It runs on a
// plain thread, where hooks do nothing, and in a fiber, with hooks, and must record the same. Its
// concurrent part is another thread there, or another fiber of the same loop.
//
//   POSIX_CASE(read_waits_for_what_is_written) {
//       int ends[2];
//       t.told("pipe", HOOKED(pipe)(ends));
//       t.beside([=] { HOOKED(usleep)(2000); HOOKED(write)(ends[1], "x", 1); });
//       ...
//   }
//
// HOOKED(read) is ::read, and notes that it was called: the suite fails if a call of calls.def was
// not. An answer that fails is written with its errno.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/detail/calls.hpp"

// What libc declares only for code that is compiled with _FORTIFY_SOURCE.
extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
int __poll_chk(pollfd*, nfds_t, int, size_t);
int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
}

namespace weft::testing {

// Lists that the system refuses without reading them can be passed to it: the interceptors of
// sanitizers read them first.
inline constexpr bool may_give_bad_lists = WEFT_ASAN == 0 && WEFT_TSAN == 0;

inline constexpr std::size_t hooked_call_count = 0
#define WEFT_IN_FIBER(type, name, parameters, arguments) +1
#define WEFT_EVERYWHERE WEFT_IN_FIBER
#define WEFT_PASSES WEFT_IN_FIBER
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER
    ;

inline std::atomic<bool> calls_made[hooked_call_count];
inline void call_is_made(hook::call c) noexcept { calls_made[static_cast<unsigned>(c)] = true; }

#define HOOKED(name) (::weft::testing::call_is_made(::weft::hook::call::name), ::name)

// Where a case runs, and what it wrote down.
class posix_side {
public:
    explicit posix_side(bool in_fiber) noexcept : in_fiber_(in_fiber) {}
    ~posix_side() { join(); }

    // Beside the case; it ends before the case does.
    void beside(std::function<void()> f) {
        if (in_fiber_)
            fibers_.emplace_back(std::move(f));
        else
            threads_.emplace_back(std::move(f));
    }
    void join() {
        for (auto& f : fibers_) f.join();
        for (auto& t : threads_) t.join();
        fibers_.clear();
        threads_.clear();
    }

    long told(std::string_view what, long answer) {
        const int why = errno;
        std::string line = std::string(what) + " = " + std::to_string(answer);
        if (answer == -1) line.append(" ").append(::strerrorname_np(why));
        add(line);
        errno = why;
        return answer;
    }
    void said(std::string_view what, std::string_view value) {
        add(std::string(what) + ": " + std::string(value));
    }
    // Whether a span was at least so long, and not ten times as long and ten seconds.
    template <class F>
    void took(std::string_view what, std::chrono::milliseconds least, F f) {
        const auto start = std::chrono::steady_clock::now();
        f();
        const auto d = std::chrono::steady_clock::now() - start;
        said(what, d < least                                   ? "too short"
                   : d > 10 * least + std::chrono::seconds(10) ? "too long"
                                                               : "took its time");
    }

    const std::string& text() const noexcept { return text_; }

private:
    // The concurrent part of a case may write at the same time. The lock is none of the hooked
    // ones.
    void add(const std::string& line) {
        const std::lock_guard held(writing_);
        text_.append(line).append("\n");
    }

    const bool in_fiber_;
    detail::spin_lock writing_;
    std::string text_;
    std::list<fiber> fibers_;
    std::list<std::thread> threads_;
};

struct posix_case {
    const char* name;
    void (*run)(posix_side&);
};
inline std::vector<posix_case>& posix_cases() {
    static std::vector<posix_case> all;
    return all;
}

#define POSIX_CASE(name)                                                        \
    static void name##_case(::weft::testing::posix_side& t);                    \
    [[maybe_unused]] static const bool name##_is_listed =                       \
        (::weft::testing::posix_cases().push_back({#name, name##_case}), true); \
    static void name##_case([[maybe_unused]] ::weft::testing::posix_side& t)

// Two ends, closed with the object.
struct fd_pair {
    int a = -1;
    int b = -1;

    static fd_pair sockets(int type = SOCK_STREAM, int family = AF_UNIX) {
        int p[2] = {-1, -1};
        HOOKED(socketpair)(family, type, 0, p);
        return {p[0], p[1]};
    }
    static fd_pair pipe(int flags = 0) {
        int p[2] = {-1, -1};
        if (flags == 0)
            HOOKED(pipe)(p);
        else
            HOOKED(pipe2)(p, flags);
        return {p[0], p[1]};
    }
    fd_pair() = default;
    fd_pair(int x, int y) : a(x), b(y) {}
    fd_pair(const fd_pair&) = delete;
    ~fd_pair() {
        close_a();
        close_b();
    }
    void close_a() {
        if (a >= 0) HOOKED(close)(a);
        a = -1;
    }
    void close_b() {
        if (b >= 0) HOOKED(close)(b);
        b = -1;
    }
};

struct one_fd {
    int n;
    explicit one_fd(int fd) : n(fd) {}
    one_fd(const one_fd&) = delete;
    ~one_fd() {
        if (n >= 0) HOOKED(close)(n);
    }
};

inline sockaddr_in loopback(std::uint16_t port = 0) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = port;
    return a;
}
template <class A>
sockaddr* as_address(A& a) {
    return reinterpret_cast<sockaddr*>(&a);
}
// A socket of its own port, and that address.
inline int bound(int type, sockaddr_in& at, int flags = 0) {
    const int fd = HOOKED(socket)(AF_INET, type | flags, 0);
    at = loopback();
    ::bind(fd, as_address(at), sizeof at);
    socklen_t bytes = sizeof at;
    ::getsockname(fd, as_address(at), &bytes);
    if (type == SOCK_STREAM) ::listen(fd, 16);
    return fd;
}

// So long from now, by that clock.
inline timespec moment_by(clockid_t clock, long ms = 5) {
    timespec t{};
    ::clock_gettime(clock, &t);
    t.tv_nsec += ms * 1'000'000;
    t.tv_sec += t.tv_nsec / 1'000'000'000;
    t.tv_nsec %= 1'000'000'000;
    return t;
}

// Counts the ends of frames that have it.
struct counted_end {
    std::atomic<int>& ends;
    ~counted_end() { ++ends; }
};

// Whether children, forked one after the other while other threads run, report true in time.
template <class F>
bool each_child_says(F says) {
    for (int left = WEFT_TSAN || WEFT_ASAN ? 10 : 200; left > 0; --left) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            ::alarm(5);
            ::_exit(says() ? 0 : 1);
        }
        int status = -1;
        if (::waitpid(child, &status, 0) != child || status != 0) return false;
    }
    return true;
}

inline void after_ms(unsigned ms) { HOOKED(usleep)(ms * 1000); }
inline void set_timeout(int fd, int name, long ms) {
    const timeval v = {ms / 1000, ms % 1000 * 1000};
    HOOKED(setsockopt)(fd, SOL_SOCKET, name, &v, sizeof v);
}

}  // namespace weft::testing
