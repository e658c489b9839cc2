// Signal handlers: which waits they end, and that a program sees the handlers that it has set.

#include "weft/hook/detail/interruption.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "test/io/way.hpp"
#include "test/support/begun.hpp"
#include "test/support/gate.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/hook.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/run/run.hpp"

// What programs call that ask the headers of libc for System V or X/Open alone.
extern "C" {
sighandler_t __sysv_signal(int, sighandler_t);
sighandler_t bsd_signal(int, sighandler_t);
sighandler_t ssignal(int, sighandler_t);
int __xpg_sigpause(int);
}

namespace {

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

std::atomic<int> handled{0};
void count(int) { handled += 1; }
void count_with_info(int, siginfo_t* i, void*) { handled += i->si_signo == SIGUSR1 ? 100 : 1000; }

using action = struct ::sigaction;

// Old programs have it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
sighandler_t set_by_sigset(int signal, sighandler_t handler) {
    return HOOKED(sigset)(signal, handler);
}
#pragma GCC diagnostic pop

// The handler of a signal meanwhile.
struct handler_set {
    const int signal;
    action before;

    explicit handler_set(int flags, int number = SIGUSR1) : signal(number) {
        action a{};
        a.sa_handler = count;
        a.sa_flags = flags;
        HOOKED(sigaction)(signal, &a, &before);
        handled = 0;
    }
    handler_set(const handler_set&) = delete;
    ~handler_set() { HOOKED(sigaction)(signal, &before, nullptr); }
};

// A thread, in both sides of a case, that sends the signal to the thread of the case when that has
// had the time to wait, and again, since the case may have been slow. If it is to be sent once,
// then when the thread sleeps.
class sender {
public:
    explicit sender(bool again = true, int signal = SIGUSR1)
        : thread_([this, again, signal, to = ::pthread_self(), number = ::gettid()] {
              do {
                  std::this_thread::sleep_for(10ms);
                  while (!again && !over_ && !thread_sleeps_now(number))
                      std::this_thread::sleep_for(1ms);
                  ::pthread_kill(to, signal);
              } while (again && !over_);
          }) {}
    sender(const sender&) = delete;
    ~sender() {
        over_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

// On a busy machine the sender is late.
void until_handled() {
    for (int i = 0; i < 1000 && handled == 0; ++i) HOOKED(usleep)(1000);
}

POSIX_CASE(a_handler_ends_what_waits) {
    const handler_set h(0);
    const auto interrupted = [&](const char* what, const std::function<long()>& call) {
        handled = 0;
        const sender s;
        t.told(what, call());
        t.told("  handled", handled > 0);
    };
    char c = 0;
    const auto pipe = fd_pair::pipe();
    const auto sockets = fd_pair::sockets();
    interrupted("read of a pipe", [&] { return HOOKED(read)(pipe.a, &c, 1); });
    interrupted("recv", [&] { return HOOKED(recv)(sockets.a, &c, 1, 0); });
    interrupted("poll", [&] {
        pollfd p = {pipe.a, POLLIN, 0};
        return HOOKED(poll)(&p, 1, 2000);
    });
    interrupted("select", [&] {
        timeval v = {2, 0};
        return HOOKED(select)(0, nullptr, nullptr, nullptr, &v);
    });
    interrupted("usleep", [&] { return HOOKED(usleep)(900'000); });
    interrupted("sleep", [&] { return HOOKED(sleep)(2); });
    timespec left{};
    interrupted("nanosleep", [&] {
        const timespec some = {2, 900'000'000};
        return HOOKED(nanosleep)(&some, &left);
    });
    t.told("left", left.tv_sec <= 2 && left.tv_sec + left.tv_nsec > 0);
    interrupted("clock_nanosleep", [&] {
        timespec at;
        ::clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += 2;
        return HOOKED(clock_nanosleep)(CLOCK_REALTIME, TIMER_ABSTIME, &at, nullptr);
    });
    interrupted("sigtimedwait", [&] {
        sigset_t other;
        ::sigemptyset(&other);
        ::sigaddset(&other, SIGUSR2);
        const timespec some = {2, 0};
        return HOOKED(sigtimedwait)(&other, nullptr, &some);
    });
    interrupted("pause", [] { return HOOKED(pause)(); });
    const int q = ::msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    interrupted("msgrcv", [&] { return HOOKED(msgrcv)(q, &left, sizeof left - 8, 0, 0); });
    ::msgctl(q, IPC_RMID, nullptr);
    {
        const pid_t child = ::fork();
        if (child == 0) {
            std::this_thread::sleep_for(2s);
            ::_exit(0);
        }
        interrupted("waitpid", [&] { return HOOKED(waitpid)(child, nullptr, 0); });
        interrupted("wait", [&] { return HOOKED(wait)(nullptr); });
        ::kill(child, SIGKILL);
        t.told("ended", HOOKED(waitpid)(child, nullptr, 0) == child);
    }
    sockaddr_in at;
    const one_fd listening(bound(SOCK_STREAM, at));
    interrupted("accept", [&] { return HOOKED(accept)(listening.n, nullptr, nullptr); });
    sem_t none;
    for (const int shared : {0, 1}) {
        ::sem_init(&none, shared, 0);
        interrupted("sem_wait", [&] { return HOOKED(sem_wait)(&none); });
        interrupted("sem_timedwait", [&] {
            timespec at;
            ::clock_gettime(CLOCK_REALTIME, &at);
            at.tv_sec += 2;
            return HOOKED(sem_timedwait)(&none, &at);
        });
    }
    FILE* const held = ::tmpfile();
    const one_fd again(::open(("/proc/self/fd/" + std::to_string(::fileno(held))).c_str(), O_RDWR));
    ::flock(::fileno(held), LOCK_EX);
    interrupted("flock", [&] { return HOOKED(flock)(again.n, LOCK_EX); });
    struct ::flock record{};
    record.l_type = F_WRLCK;
    ::fcntl(::fileno(held), F_OFD_SETLK, &record);
    interrupted("fcntl", [&] { return HOOKED(fcntl)(again.n, F_OFD_SETLKW, &record); });
    ::fclose(held);
    t.told("part", [&] {
        HOOKED(send)(sockets.b, "ab", 2, 0);
        const sender s;
        char room[4];
        return HOOKED(recv)(sockets.a, room, sizeof room, MSG_WAITALL);
    }());
    t.join();
}

// abort() raises it; others send it.
POSIX_CASE(a_handler_of_sigabrt_ends_what_waits) {
    const handler_set h(0, SIGABRT);
    const sender s(true, SIGABRT);
    t.told("usleep", HOOKED(usleep)(900'000));
    t.told("handled", handled > 0);
}

POSIX_CASE(a_handler_that_was_set_by_other_calls_ends_what_waits) {
    action first;
    HOOKED(sigaction)(SIGUSR1, nullptr, &first);
    // A handler that sysv_signal sets runs once.
    sighandler_t (*const calls[])(int, sighandler_t) = {
        set_by_sigset, [](int n, sighandler_t by) { return HOOKED(sysv_signal)(n, by); },
        [](int n, sighandler_t by) { return HOOKED(__sysv_signal)(n, by); },
        [](int n, sighandler_t by) { return HOOKED(bsd_signal)(n, by); },
        [](int n, sighandler_t by) { return HOOKED(ssignal)(n, by); }};
    for (const auto call : calls) {
        handled = 0;
        t.told("set", call(SIGUSR1, count) == SIG_DFL);
        {
            const sender s(false);
            t.told("usleep", HOOKED(usleep)(900'000));
        }
        t.told("handled", handled);
        HOOKED(sigaction)(SIGUSR1, &first, nullptr);
    }
}

POSIX_CASE(a_handler_that_restarts_ends_what_is_never_restarted) {
    const handler_set h(SA_RESTART);
    char c = 0;
    const auto pipe = fd_pair::pipe();
    const auto sockets = fd_pair::sockets();
    {
        t.beside([&] {
            after_ms(25);
            until_handled();
            HOOKED(write)(pipe.b, "x", 1);
        });
        const sender s;
        t.told("read goes on", HOOKED(read)(pipe.a, &c, 1));
        t.join();
    }
    t.told("handled", handled > 0);
    {
        const sender s;
        pollfd p = {pipe.a, POLLIN, 0};
        t.told("poll", HOOKED(poll)(&p, 1, 2000));
    }
    {
        const sender s;
        t.told("usleep", HOOKED(usleep)(900'000));
    }
    {
        const sender s;
        set_timeout(sockets.a, SO_RCVTIMEO, 2000);
        t.told("recv with a timeout", HOOKED(recv)(sockets.a, &c, 1, 0));
    }
    {
        sem_t none;
        ::sem_init(&none, 0, 0);
        timespec at;
        ::clock_gettime(CLOCK_REALTIME, &at);
        ++at.tv_sec;
        const sender s;
        t.told("sem_timedwait", HOOKED(sem_timedwait)(&none, &at));
    }
}

// Where nothing reports the awaited event, and the call polls for it.
POSIX_CASE(a_handler_that_restarts_ends_no_call_that_asks_again) {
    const handler_set h(SA_RESTART);
    const auto goes_on = [&](const char* what, const std::function<void()>& beside,
                             const std::function<long()>& call) {
        handled = 0;
        const sender s;
        t.beside([&] {
            after_ms(40);
            until_handled();
            beside();
        });
        t.told(what, call());
        t.told("  handled", handled > 0);
        t.join();
    };
    char name[] = "/tmp/weft_interruption.XXXXXX";
    ::close(::mkstemp(name));
    ::unlink(name);
    ::mkfifo(name, 0600);
    goes_on(
        "open of a pipe", [&] { HOOKED(close)(HOOKED(open)(name, O_WRONLY)); },
        [&] { return HOOKED(close)(HOOKED(open)(name, O_RDONLY)); });
    ::unlink(name);

    const one_fd listening(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    socklen_t bytes = sizeof at;
    ::bind(listening.n, as_address(at), sizeof at.sun_family);
    ::getsockname(listening.n, as_address(at), &bytes);
    ::listen(listening.n, 0);
    const one_fd first(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    const one_fd second(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    t.told("connect", HOOKED(connect)(first.n, as_address(at), bytes));
    goes_on(
        "connect where there is no room",
        [&] { HOOKED(close)(HOOKED(accept)(listening.n, nullptr, nullptr)); },
        [&] { return HOOKED(connect)(second.n, as_address(at), bytes); });

    int steering = -1;
    int terminal = -1;
    HOOKED(openpty)(&steering, &terminal, nullptr, nullptr, nullptr);
    termios modes;
    ::tcgetattr(terminal, &modes);
    ::cfmakeraw(&modes);
    modes.c_cc[VMIN] = 10;
    ::tcsetattr(terminal, TCSANOW, &modes);
    char text[4];
    goes_on(
        "read of less than a terminal collects", [&] { HOOKED(write)(steering, "abcd", 4); },
        [&] { return HOOKED(read)(terminal, text, sizeof text); });
    HOOKED(close)(terminal);
    HOOKED(close)(steering);
}

// It lets through what the thread does not block.
POSIX_CASE(a_handler_ends_a_wait_with_a_mask) {
    const handler_set h(SA_RESTART);
    const auto pipe = fd_pair::pipe();
    sigset_t none;
    ::sigemptyset(&none);
    {
        const sender s;
        pollfd p = {pipe.a, POLLIN, 0};
        const timespec some = {2, 0};
        t.told("ppoll", HOOKED(ppoll)(&p, 1, &some, &none));
    }
    const sender s;
    fd_set r;
    FD_ZERO(&r);
    FD_SET(pipe.a, &r);
    const timespec some = {2, 0};
    t.told("pselect", HOOKED(pselect)(pipe.a + 1, &r, nullptr, nullptr, &some, &none));
}

// On a thread of its own, where hooks do nothing: what ends a wait that no handler has ended.
class last_resort {
public:
    explicit last_resort(std::function<void()> f)
        : thread_([this, f = std::move(f)] {
              for (int i = 0; i != 200 && !over_; ++i) std::this_thread::sleep_for(5ms);
              if (!over_) f();
          }) {}
    last_resort(const last_resort&) = delete;
    ~last_resort() {
        over_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

POSIX_CASE(a_handler_that_restarts_ends_what_has_moved_a_part) {
    const handler_set h(SA_RESTART);
    std::string much(300'000, 'x');
    {
        const auto pipe = fd_pair::pipe();
        const last_resort end([&] {
            std::string room(much);
            std::size_t come = 0;
            while (come < much.size()) {
                const ssize_t n = ::read(pipe.a, room.data(), room.size());
                if (n <= 0) break;
                come += static_cast<std::size_t>(n);
            }
        });
        const sender s;
        t.told("write", HOOKED(write)(pipe.b, much.data(), much.size()));
    }
    {
        const auto sockets = fd_pair::sockets();
        const last_resort end([&] { ::shutdown(sockets.b, SHUT_RDWR); });
        HOOKED(write)(sockets.b, "abc", 3);
        const sender s;
        t.told("recv of all", HOOKED(recv)(sockets.a, much.data(), 10, MSG_WAITALL));
    }
    {
        sockaddr_in at;
        const one_fd l(bound(SOCK_STREAM, at));
        const one_fd from(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
        HOOKED(connect)(from.n, as_address(at), sizeof at);
        const one_fd to(HOOKED(accept)(l.n, nullptr, nullptr));
        const last_resort end([&] { ::shutdown(from.n, SHUT_RDWR); });
        HOOKED(write)(from.n, "abc", 3);
        const sender s;
        t.told("look at all", HOOKED(recv)(to.n, much.data(), 10, MSG_PEEK | MSG_WAITALL));
    }
    {
        const auto sockets = fd_pair::sockets(SOCK_DGRAM);
        const last_resort end([&] { ::send(sockets.b, "def", 3, 0); });
        HOOKED(send)(sockets.b, "abc", 3, 0);
        iovec room[2] = {{much.data(), 10}, {much.data() + 10, 10}};
        mmsghdr all[2] = {};
        for (int i = 0; i != 2; ++i) {
            all[i].msg_hdr.msg_iov = &room[i];
            all[i].msg_hdr.msg_iovlen = 1;
        }
        const sender s;
        t.told("recvmmsg", HOOKED(recvmmsg)(sockets.a, all, 2, 0, nullptr));
    }
    t.told("handled", handled > 0);
}

// It was sent to the thread, which blocks it: the call that lets it through has its handler.
POSIX_CASE(a_pending_signal_that_a_mask_lets_through_ends_no_other_wait) {
    const handler_set h(0);
    const auto pipe = fd_pair::pipe();
    t.beside([&] {
        char bytes[2];
        t.told("read", HOOKED(read)(pipe.a, bytes, 2));
    });
    after_ms(3);
    sigset_t one;
    sigset_t none;
    sigset_t before;
    ::sigemptyset(&none);
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &one, &before);
    const timespec at_once{};
    for (const bool by_select : {true, false}) {
        HOOKED(pthread_sigqueue)(::pthread_self(), SIGUSR1, sigval{});
        t.told("poll or select",
               by_select ? HOOKED(pselect)(0, nullptr, nullptr, nullptr, &at_once, &none)
                         : HOOKED(ppoll)(nullptr, 0, &at_once, &none));
        after_ms(3);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    t.told("handled", handled);
    HOOKED(write)(pipe.b, "x", 1);
    t.join();
}

// The call polls for an event that nothing reports. A handler that runs between two of the waits
// ends the call nevertheless.
POSIX_CASE(one_handler_ends_a_wait_that_is_made_of_many) {
    const handler_set h(0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;  // with no more than that the system chooses a name
    const one_fd listener(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    ::bind(listener.n, as_address(at), sizeof at.sun_family);
    ::listen(listener.n, 0);
    socklen_t bytes = sizeof at;
    ::getsockname(listener.n, as_address(at), &bytes);
    const one_fd first(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
    t.told("connect", HOOKED(connect)(first.n, as_address(at), bytes));
    const one_fd file(HOOKED(memfd_create)("weft", 0));
    for (int i = 0; i != 12; ++i) {
        {
            const one_fd next(HOOKED(socket)(AF_UNIX, SOCK_STREAM, 0));
            const last_resort end([&] { ::shutdown(listener.n, SHUT_RDWR); });
            const sender s(false);
            t.told("connect to a full one", HOOKED(connect)(next.n, as_address(at), bytes));
        }
        const sender s(false);
        pollfd p = {file.n, POLLPRI, 0};
        t.told("poll of what nobody watches", HOOKED(poll)(&p, 1, 3000));
    }
}

POSIX_CASE(what_a_handler_does_before_a_wait_ends_none) {
    const handler_set h(0);
    ::raise(SIGUSR1);
    t.told("usleep", HOOKED(usleep)(5000));
    t.told("handled", handled);
    ::raise(SIGUSR1);
    const timespec some = {0, 5'000'000};
    t.told("nanosleep", HOOKED(nanosleep)(&some, nullptr));
    t.told("handled", handled);
}

POSIX_CASE(raise_ends_the_wait_of_no_other) {
    const handler_set h(0);
    t.beside([] {
        after_ms(5);
        ::raise(SIGUSR1);
    });
    t.told("usleep", HOOKED(usleep)(20'000));
    t.join();
    t.told("handled", handled);
}

// The system sends it to the thread that writes.
POSIX_CASE(sigpipe_ends_the_wait_of_no_other) {
    action a{};
    action before{};
    a.sa_handler = count;
    HOOKED(sigaction)(SIGPIPE, &a, &before);
    handled = 0;
    t.beside([] {
        fd_pair p = fd_pair::pipe();
        p.close_a();
        after_ms(5);
        HOOKED(write)(p.b, "x", 1);
    });
    t.told("usleep", HOOKED(usleep)(20'000));
    t.join();
    t.told("handled", handled);
    HOOKED(sigaction)(SIGPIPE, &before, nullptr);
}

void tell(posix_side& t, const char* what, const action& a) {
    t.said(what, a.sa_handler == SIG_DFL             ? "default"
                 : a.sa_handler == SIG_IGN           ? "ignored"
                 : a.sa_handler == count             ? "count"
                 : a.sa_sigaction == count_with_info ? "with info"
                                                     : "another");
    t.told("  flags", a.sa_flags & ~0x04000000);  // libc's own
    t.told("  mask", ::sigismember(&a.sa_mask, SIGUSR2));
}

POSIX_CASE(a_program_is_shown_its_own_handlers) {
    action first;
    action a{};
    action old{};
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &first));
    a.sa_handler = count;
    a.sa_flags = SA_RESTART | SA_NODEFER;
    ::sigaddset(&a.sa_mask, SIGUSR2);
    t.told("set", HOOKED(sigaction)(SIGUSR1, &a, &old));
    tell(t, "before", old);
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &old));
    tell(t, "plain", old);
    a.sa_sigaction = count_with_info;
    a.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND);
    t.told("set", HOOKED(sigaction)(SIGUSR1, &a, &old));
    tell(t, "before", old);
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &old));
    tell(t, "with info", old);
    const pid_t child = ::fork();
    if (child == 0) {
        action there;
        ::sigaction(SIGUSR1, nullptr, &there);
        ::_exit(there.sa_sigaction == count_with_info ? 7 : 8);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    t.told("in a child", WEXITSTATUS(status));
    handled = 0;
    ::raise(SIGUSR1);
    t.told("handled", handled);
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &old));
    tell(t, "once", old);
    t.told("signal", HOOKED(signal)(SIGUSR1, count) == SIG_DFL);
    ::raise(SIGUSR1);
    t.told("handled", handled);
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &old));
    tell(t, "by signal", old);
    t.told("ignore", HOOKED(signal)(SIGUSR1, SIG_IGN) == count);
    ::raise(SIGUSR1);
    t.told("handled", handled);
    t.told("and before", HOOKED(signal)(SIGUSR1, SIG_DFL) == SIG_IGN);
    t.told("sigset", set_by_sigset(SIGUSR1, count) == SIG_DFL);
    t.told("again", set_by_sigset(SIGUSR1, SIG_IGN) == count);
    t.told("hold", set_by_sigset(SIGUSR1, SIG_HOLD) == SIG_IGN);
    t.told("held", set_by_sigset(SIGUSR1, count) == SIG_HOLD);
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &old));
    tell(t, "by sigset", old);
    t.told("sysv_signal", HOOKED(sysv_signal)(SIGUSR1, count) == count);
    t.told("ask", HOOKED(sigaction)(SIGUSR1, nullptr, &old));
    tell(t, "by sysv_signal", old);
    HOOKED(signal)(SIGUSR1, SIG_DFL);
    t.told("no such signal", HOOKED(sigaction)(99, &a, nullptr));
    t.told("not that one", HOOKED(sigaction)(SIGKILL, &a, nullptr));
    t.told("ask", HOOKED(sigaction)(SIGKILL, nullptr, &old));
    tell(t, "never set", old);
    t.told("nor by signal", HOOKED(signal)(SIGKILL, count) == SIG_ERR);
    t.told("nor by sigset", set_by_sigset(SIGKILL, count) == SIG_ERR);
    HOOKED(sigaction)(SIGUSR1, &first, nullptr);
}

POSIX_CASE(sigsuspend_lets_signals_through) {
    const handler_set h(SA_RESTART);
    sigset_t these;
    sigset_t none;
    sigset_t before;
    ::sigemptyset(&none);
    ::sigemptyset(&these);
    ::sigaddset(&these, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &these, &before);
    ::raise(SIGUSR1);
    t.told("blocked", handled);
    t.told("pending", HOOKED(sigsuspend)(&none));
    t.told("handled", handled);
    {
        const sender s(false);
        t.told("sent", HOOKED(sigsuspend)(&none));
    }
    t.told("handled", handled);
    {
        const sender s(false);
        t.told("sigpause", HOOKED(__xpg_sigpause)(SIGUSR1));
    }
    t.told("handled", handled);
    t.told("sigpause of no signal", HOOKED(__xpg_sigpause)(12345));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class interruption : public weft::testing::on_each_driver {
protected:
    // The call waits in a fiber; a handler runs; and before the loop can tell the fiber so, a
    // thread ends the wait by wake(), for nothing that would end the call. Returns what the call
    // has returned; errno is that of the call.
    long between_two_waits(const std::function<long()>& call, const std::function<void()>& wake,
                           const std::function<void()>& end_otherwise) {
        const handler_set h(0);
        long r = 0;
        int why = 0;
        fiber f([&] {
            r = call();
            why = errno;
        });
        ::usleep(2000);
        EXPECT_FALSE(f.done());
        ::kill(::getpid(), SIGUSR1);
        std::atomic<bool> over{false};
        std::thread waker([&] {
            while (!loop().has_posted()) std::this_thread::yield();
            wake();
            over = true;
        });
        while (!over) {  // this thread runs no other fiber meanwhile
        }
        waker.join();
        for (int i = 0; i != 50 && !f.done(); ++i) ::usleep(1000);
        EXPECT_TRUE(f.done()) << "the handler was lost";
        if (!f.done()) end_otherwise();
        f.join();
        errno = why;
        return r;
    }

    // Makes the waiters for the descriptor look at it once more.
    static void stir(int fd) {
        weft::detail::io_entry* const e = weft::detail::find_entry(fd);
        ASSERT_NE(e, nullptr);
        e->notify(weft::detail::io_entry::generation_of(e->life),
                  weft::detail::io_entry::readable | weft::detail::io_entry::writable);
    }
    static void hold(std::chrono::milliseconds d) {
        const auto began = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - began < d) {
        }
    }
};

// Another writer, which looks first, finds the socket full.
TEST_P(interruption, ends_a_wait_whose_event_another_fiber_takes) {
    run([&] {
        const auto full = fd_pair::sockets();
        std::string all(1 << 20, 'x');
        while (::send(full.a, all.data(), all.size(), MSG_DONTWAIT) > 0) {
        }
        const auto write_more = [&] { return ::write(full.a, "y", 1); };
        // The elder fiber waits second: the handler is its own.
        bool waits = false;
        long n = between_two_waits(
            [&] {
                static_cast<void>(this_fiber::get_id());  // an id is given when it is asked for
                fiber first([&] {
                    waits = true;
                    write_more();
                });
                while (!waits) this_fiber::yield();
                const long r = write_more();
                const int why = errno;
                while (::recv(full.b, all.data(), all.size(), MSG_DONTWAIT) > 0) {
                }
                first.join();
                errno = why;
                return r;
            },
            [&] { stir(full.a); },
            [&] {
                while (::recv(full.b, all.data(), all.size(), MSG_DONTWAIT) > 0) ::usleep(100);
            });
        EXPECT_EQ(n, -1);
        EXPECT_EQ(errno, EINTR);
    });
}

// A wait for a descriptor that was waited for before is two, if it lasts.
TEST_P(interruption, ends_a_wait_that_has_just_begun_to_last) {
    run([&] {
        const auto p = fd_pair::pipe();
        char c = 0;
        fiber before([&] { EXPECT_EQ(::read(p.a, &c, 1), 1); });
        ::usleep(1000);
        EXPECT_EQ(::write(p.b, "x", 1), 1);
        before.join();
        const long n = between_two_waits([&] { return ::read(p.a, &c, 1); },
                                         [] { hold(2 * hook::trusted_wait); },
                                         [&] { static_cast<void>(::write(p.b, "x", 1)); });
        EXPECT_EQ(n, -1);
        EXPECT_EQ(errno, EINTR);
    });
}

// The coroutine's wait is inside the fiber's, and is the innermost.
TEST_P(interruption, ends_the_wait_of_the_fiber_and_not_of_a_coroutine_in_it) {
    run([&] {
        const handler_set h(0);
        weft::testing::gate first;
        weft::testing::gate second;
        bool passed = false;
        fiber f([&] {
            const weft::testing::begun waits = weft::testing::pass_both(first, second, &passed);
            EXPECT_EQ(::usleep(2'000'000), -1);
            EXPECT_EQ(errno, EINTR);
            EXPECT_TRUE(second.let_one_pass());
            this_fiber::yield();
        });
        ::usleep(1000);
        ASSERT_TRUE(first.let_one_pass());
        this_fiber::sleep_for(1ms);
        ::kill(::getpid(), SIGUSR1);
        f.join();
        EXPECT_TRUE(passed);
    });
}

TEST_P(interruption, ends_a_call_between_two_of_its_waits) {
    run([&] {
        const auto pipe = fd_pair::pipe();
        const auto second = fd_pair::pipe();
        const auto sockets = fd_pair::sockets();
        const one_fd counter(::eventfd(5, 0));
        const std::string name = "/weft-" + std::to_string(::getpid());
        ::mq_attr attributes{};
        attributes.mq_maxmsg = 1;
        attributes.mq_msgsize = 8;
        const mqd_t queue = ::mq_open(name.c_str(), O_CREAT | O_RDWR, 0600, &attributes);
        if (queue >= 0) ::mq_unlink(name.c_str());
        struct one_call {
            const char* name;
            std::function<long()> make;
            std::function<void()> wake;
            std::function<void()> end_otherwise;
        };
        char c[8] = {};
        const auto write_one = [&] { static_cast<void>(::write(pipe.b, "x", 1)); };
        std::vector<one_call> all = {
            {"splice", [&] { return ::splice(sockets.a, nullptr, pipe.b, nullptr, 8, 0); },
             [&] { stir(sockets.a); }, [&] { static_cast<void>(::write(sockets.b, "x", 1)); }},
            {"vmsplice",
             [&] {
                 const iovec one = {c, 1};
                 return ::vmsplice(second.a, &one, 1, 0);
             },
             [&] { stir(second.a); }, [&] { static_cast<void>(::write(second.b, "x", 1)); }},
            {"clock_nanosleep",
             [&] {
                 timespec end{};
                 ::clock_gettime(CLOCK_TAI, &end);
                 end.tv_sec += 1;
                 errno = ::clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &end, nullptr);
                 return -1L;
             },
             [&] { hold(110ms); }, [] {}},
            {"write of a counter",
             [&] {
                 const std::uint64_t most = UINT64_MAX - 1;
                 return ::write(counter.n, &most, sizeof most);
             },
             [] { hold(3ms); }, [&] { static_cast<void>(::read(counter.n, c, 8)); }},
            {"recv of all",
             [&] { return ::recv(sockets.a, c, 2, MSG_WAITALL) == 1 ? errno = EINTR, -1L : 0L; },
             [&] {
                 static_cast<void>(::write(sockets.b, "x", 1));
                 stir(sockets.a);
             },
             [&] { static_cast<void>(::write(sockets.b, "x", 1)); }},
        };
        if (queue >= 0)
            all.push_back({"mq_receive", [&] { return ::mq_receive(queue, c, 8, nullptr); },
                           [&] { stir(queue); }, [&] { ::mq_send(queue, "x", 1, 0); }});
        for (const one_call& one : all) {
            const long n = between_two_waits(one.make, one.wake, one.end_otherwise);
            EXPECT_EQ(n < 0 ? errno : 0, EINTR) << one.name;
        }
        write_one();
        if (queue >= 0) ::mq_close(queue);
    });
}

// What has woken the call is gone when the call looks: another thread has taken it.
TEST_P(interruption, ends_a_call_with_a_mask_between_two_of_its_waits) {
    run([&] {
        const auto p = fd_pair::pipe();
        const one_fd set(::epoll_create1(0));
        epoll_event e{};
        e.events = EPOLLIN;
        ::epoll_ctl(set.n, EPOLL_CTL_ADD, p.a, &e);
        char c = 0;
        const long n = between_two_waits(
            [&] {
                sigset_t none;
                sigemptyset(&none);
                return long{::epoll_pwait(set.n, &e, 1, -1, &none)};
            },
            [&] {
                static_cast<void>(::write(p.b, "x", 1));
                hold(20ms);
                static_cast<void>(::read(p.a, &c, 1));
            },
            [&] { static_cast<void>(::write(p.b, "x", 1)); });
        EXPECT_EQ(n, -1);
        EXPECT_EQ(errno, EINTR);
    });
}

TEST_P(interruption, ends_a_wait_for_a_semaphore_whose_unit_another_takes) {
    run([&] {
        sem_t s;
        ::sem_init(&s, 0, 0);
        const long n = between_two_waits([&] { return long{::sem_wait(&s)}; },
                                         [&] {
                                             ::sem_post(&s);
                                             hold(20ms);
                                             EXPECT_EQ(::sem_trywait(&s), 0);
                                         },
                                         [&] { ::sem_post(&s); });
        EXPECT_EQ(n, -1);
        EXPECT_EQ(errno, EINTR);
        ::sem_destroy(&s);
    });
}

TEST_P(interruption, ends_the_wait_of_the_eldest_fiber) {
    run([&] {
        const handler_set h(0);
        int younger = 0;
        fiber other([&] { younger = ::usleep(40'000); });
        fiber sends([] {
            ::usleep(10'000);
            ::kill(::getpid(), SIGUSR1);
        });
        EXPECT_EQ(::usleep(900'000), -1);
        EXPECT_EQ(errno, EINTR);
        other.join();
        sends.join();
        EXPECT_EQ(younger, 0);
        EXPECT_EQ(handled, 1);
    });
}

// A thread of weft's own has made the call, and has returned from it when the caller continues.
TEST_P(interruption, of_a_call_with_a_mask_leaves_no_fd_in_use) {
    run([&] {
        const handler_set one(0);
        int missed = 0;
        for (int i = 0; i != 200; ++i) {
            fd_pair p = fd_pair::pipe();
            int n = 0;
            fiber waits([&] {
                sigset_t none;
                sigemptyset(&none);
                pollfd of_a = {p.a, POLLIN, 0};
                n = i % 2 == 0 ? ::ppoll(&of_a, 1, nullptr, &none) : [&] {
                    fd_set all;
                    FD_ZERO(&all);
                    FD_SET(p.a, &all);
                    return ::pselect(p.a + 1, &all, nullptr, nullptr, nullptr, &none);
                }();
                p.close_a();
                pollfd of_b = {p.b, POLLOUT, 0};
                ::poll(&of_b, 1, 0);
                if ((of_b.revents & POLLERR) == 0) ++missed;
            });
            ::usleep(1000);
            ::kill(::getpid(), SIGUSR1);
            waits.join();
            EXPECT_EQ(n, -1);
        }
        EXPECT_EQ(missed, 0);
    });
}

TEST_P(interruption, ends_one_wait_and_is_not_a_stop) {
    run([&] {
        const handler_set h(0);
        const sender s(false);
        EXPECT_EQ(::usleep(900'000), -1);
        EXPECT_EQ(::usleep(1000), 0);
        this_fiber::sleep_for(1ms);
    });
}

INSTANTIATE_ON_DRIVERS(interruption);

// Like a worker of a pool, it offloads a turn that ends a wait to another, which runs it at once.
struct gives_away final : scheduler, steal_source {
    loop from, to;

    gives_away() { from.set_source(this); }
    void schedule(runnable& r) noexcept override { from.post(r); }
    executor* fixed_executor() noexcept override { return nullptr; }
    ready_turn take(bool busy) noexcept override {
        if (busy) from.offload_ready();
        return {};
    }
    bool rest() noexcept override { return true; }
    void rested() noexcept override {}
    void receive(flow& f) noexcept override {
        to.post(f.turn);
        to.run_until_idle();
    }
    scheduler& default_scheduler() noexcept override { return *this; }
};

// The handler was reported while the fiber waited at the first gate, in the same call.
TEST(interruption_of_one_that_moves, ends_the_wait_on_the_fibers_current_loop) {
    hook::expect_handlers();
    gives_away worker;
    gate first;
    gate second;
    wait_status how = wait_status::woken;
    fiber f(
        [&] {
            const hook::interruptible call(hook::ended_by::any_handler);
            static_cast<void>(weft::await(first.async_pass_until(never)));
            how = weft::await(second.async_pass_until(never));
        },
        {.on = worker, .migratable = true});
    worker.from.run_until_idle();
    hook::note_handler(SIGUSR1, false, nullptr);
    while (!worker.from.has_posted()) std::this_thread::yield();
    ASSERT_TRUE(first.let_one_pass());
    worker.from.run_until_idle();
    EXPECT_TRUE(second.anybody_waits()) << "it was ended by a loop that has it no more";
    worker.to.run_until_idle();
    EXPECT_FALSE(second.let_one_pass());
    worker.to.run_until_idle();
    EXPECT_EQ(how, wait_status::stopped);
    EXPECT_TRUE(f.done());
}

// Whatever lock another thread of the parent had when it was forked.
TEST(interruption_in_children, ends_waits_whatever_other_threads_did_at_the_fork) {
    if (WEFT_TSAN) GTEST_SKIP() << "a child of several threads may begin none";
    const handler_set usr1(0);
    std::atomic<bool> ended{false};
    std::thread busy([&] {
        run([&] {
            while (!ended) const hook::interruptible begins_and_ends(hook::ended_by::any_handler);
        });
    });
    const auto serves = [] {
        bool slept = false;
        run([&] {
            const ::pid_t own = ::fork();
            if (own == 0) ::_exit(7);
            int status = -1;
            ::waitpid(own, &status, 0);
            slept = ::usleep(1) == 0 && WEXITSTATUS(status) == 7;
        });
        return slept;
    };
    EXPECT_TRUE(each_child_says([&] {
        hook::enable_in_child();
        return serves();
    }));
    ended = true;
    busy.join();
}

}  // namespace
