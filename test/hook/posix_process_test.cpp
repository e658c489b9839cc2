// Cases of children that are waited for.

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <thread>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/hook.hpp"

namespace {

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

// A child that runs until a byte comes from the other end of a pipe, and exits with that byte as
// its code.
struct told_child {
    fd_pair pipe = fd_pair::pipe(O_CLOEXEC);
    pid_t id;

    told_child() : id(::fork()) {
        if (id != 0) return;
        char c = 0;
        const timespec some = {20, 0};
        pollfd p = {pipe.a, POLLIN, 0};
        ::ppoll(&p, 1, &some, nullptr);
        ::_exit(::read(pipe.a, &c, 1) == 1 ? c : 1);
    }
    void end(char code) { HOOKED(write)(pipe.b, &code, 1); }
};

// Waits so long, in a thread or a fiber, that all agents beside it wait.
void let_others_wait() { after_ms(5); }

void tell(posix_side& t, const siginfo_t& i, pid_t child) {
    t.told("  signal", i.si_signo);
    t.told("  of the child", i.si_pid == child);
    t.told("  why", i.si_code);
    t.told("  status", i.si_status);
}

POSIX_CASE(waitid_tells_what_waitid_tells) {
    siginfo_t i{};
    {
        told_child c;
        t.told("nothing yet",
               HOOKED(waitid)(P_PID, static_cast<id_t>(c.id), &i, WEXITED | WNOHANG));
        t.told("nobody", i.si_pid);
        t.beside([&] {
            let_others_wait();
            c.end(7);
        });
        t.told("waitid", HOOKED(waitid)(P_PID, static_cast<id_t>(c.id), &i, WEXITED | WNOWAIT));
        tell(t, i, c.id);
        t.told("it is there still", HOOKED(waitid)(P_ALL, 0, &i, WEXITED | WNOWAIT));
        t.told("taken, with nothing told",
               HOOKED(waitid)(P_PID, static_cast<id_t>(c.id), nullptr, WEXITED));
        t.told("once", HOOKED(waitid)(P_PID, static_cast<id_t>(c.id), &i, WEXITED));
        t.join();
    }
    {
        told_child c;
        t.beside([&] {
            let_others_wait();
            c.end(8);
        });
        t.told("any", HOOKED(waitid)(P_ALL, 0, &i, WEXITED));
        tell(t, i, c.id);
        t.told("none", HOOKED(waitid)(P_ALL, 0, &i, WEXITED));
        t.join();
    }
    t.told("no kind of change", HOOKED(waitid)(P_ALL, 0, &i, 0));
    t.told("no such option", HOOKED(waitid)(P_ALL, 0, &i, WEXITED | 1 << 28));
    t.told("no such child", HOOKED(waitid)(P_PID, 1, &i, WEXITED));
}

POSIX_CASE(waitid_of_a_descriptor) {
    siginfo_t i{};
    told_child c;
    const one_fd fd(static_cast<int>(::syscall(SYS_pidfd_open, c.id, 0)));
    constexpr auto by = static_cast<idtype_t>(3);  // P_PIDFD
    const auto id = static_cast<id_t>(fd.n);
    HOOKED(fcntl)(fd.n, F_SETFL, O_NONBLOCK);
    t.told("not to wait", HOOKED(waitid)(by, id, &i, WEXITED));
    HOOKED(fcntl)(fd.n, F_SETFL, 0);
    t.beside([&] {
        let_others_wait();
        c.end(9);
    });
    t.told("waitid", HOOKED(waitid)(by, id, &i, WEXITED));
    tell(t, i, c.id);
    t.told("once", HOOKED(waitid)(by, id, &i, WEXITED));
    t.told("no descriptor", HOOKED(waitid)(by, 12'345, &i, WEXITED));
    t.join();
}

POSIX_CASE(a_child_that_stops_and_goes_on) {
    told_child c;
    int status = 0;
    siginfo_t i{};
    t.beside([&] {
        let_others_wait();
        ::kill(c.id, SIGSTOP);
    });
    t.told("stopped", HOOKED(waitpid)(c.id, &status, WUNTRACED) == c.id);
    t.told("by", WIFSTOPPED(status) ? WSTOPSIG(status) : -2);
    t.join();
    t.beside([&] {
        let_others_wait();
        ::kill(c.id, SIGCONT);
    });
    t.told("goes on", HOOKED(waitid)(P_ALL, 0, &i, WCONTINUED));
    tell(t, i, c.id);
    t.join();
    t.beside([&] {
        let_others_wait();
        ::kill(c.id, SIGKILL);
    });
    t.told("killed", HOOKED(wait3)(&status, WUNTRACED, nullptr) == c.id);
    t.told("by", WIFSIGNALED(status) ? WTERMSIG(status) : -2);
    t.join();
}

POSIX_CASE(groups_of_children) {
    told_child mine;
    told_child other;
    ::setpgid(other.id, other.id);
    int status = 0;
    rusage used{};
    other.end(3);
    t.told("it has ended",
           HOOKED(waitid)(P_PID, static_cast<id_t>(other.id), nullptr, WEXITED | WNOWAIT));
    t.beside([&] {
        let_others_wait();
        mine.end(4);
    });
    t.told("of this group", HOOKED(waitpid)(0, &status, 0) == mine.id);
    t.told("code", WEXITSTATUS(status));
    t.told("of that group", HOOKED(wait4)(-other.id, &status, 0, &used) == other.id);
    t.told("code", WEXITSTATUS(status));
    t.told("none is left in it", HOOKED(waitpid)(-other.id, &status, 0));
    t.told("nor in any", HOOKED(wait3)(&status, 0, &used));
    t.told("no such group", HOOKED(waitpid)(-2147483647 - 1, &status, 0));
    t.join();
}

POSIX_CASE(each_of_several_that_wait_for_any_child_gets_one) {
    std::atomic<int> codes{0};
    {
        told_child all[3];
        for (int n = 0; n < 3; ++n)
            t.beside([&] {
                int status = 0;
                if (HOOKED(wait)(&status) > 0) codes += WEXITSTATUS(status);
            });
        let_others_wait();
        for (told_child& c : all) c.end(static_cast<char>(1 << (&c - all)));
        t.join();
    }
    t.told("all codes", codes);
    t.told("none is left", HOOKED(wait)(nullptr));
}

POSIX_CASE(system_runs_a_command) {
    t.told("there is a shell", HOOKED(system)(nullptr) != 0);
    t.told("code", HOOKED(system)("exit 5"));
    t.told("killed", HOOKED(system)("kill -9 $$"));
    t.told("no such command", HOOKED(system)("weft-no-such-command 2>/dev/null"));
    sigset_t some;
    sigset_t before;
    ::sigemptyset(&some);
    ::sigaddset(&some, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &some, &before);
    t.told("it has the mask of its caller",
           HOOKED(system)("grep -qi '^SigBlk:[[:space:]]*0*0800$' /proc/self/status"));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// What a child that shares its parent's memory reports, and that nothing else ran in it: neither a
// fiber of its parent's nor a thread of weft's own.
template <class F>
void child_in_the_same_memory(posix_side& t, std::string_view what, F says) {
    std::atomic<::pid_t> ran_in{0};
    t.beside([&] { ran_in = ::getpid(); });
    const ::pid_t child = ::vfork();
    if (child == 0) {
        const int r = says();
        struct ::stat threads;
        ::stat("/proc/self/task", &threads);
        constexpr int has_begun_a_thread = 255;
        ::_exit(threads.st_nlink == 3 ? r : has_begun_a_thread);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    t.told(what, status);
    t.join();
    t.told("  beside it", ran_in == ::getpid());
}
int errno_of_call(long answer) { return answer < 0 ? errno : static_cast<int>(answer); }

POSIX_CASE(a_child_in_the_same_memory_waits_with_its_thread) {
    const auto s = fd_pair::sockets();
    const one_fd set(HOOKED(epoll_create1)(0));
    epoll_event event{EPOLLIN, {}};
    ::epoll_ctl(set.n, EPOLL_CTL_ADD, s.a, &event);
    sigset_t none;
    ::sigemptyset(&none);
    const timespec some = {0, 5'000'000};
    pollfd both[2] = {{s.a, POLLIN, 0}, {s.a, POLLRDHUP, 0}};
    const auto in_child = [&](const char* what, auto f) {
        t.took(what, milliseconds(5), [&] { child_in_the_same_memory(t, what, f); });
    };
    in_child("poll", [&] { return errno_of_call(HOOKED(poll)(both, 2, 5)); });
    in_child("ppoll", [&] { return errno_of_call(HOOKED(ppoll)(both, 2, &some, &none)); });
    in_child("select", [&] {
        fd_set in;
        FD_ZERO(&in);
        FD_SET(s.a, &in);
        timeval t5 = {0, 5000};
        const int r = HOOKED(select)(s.a + 1, &in, nullptr, nullptr, &t5);
        return r == 0 && !FD_ISSET(s.a, &in) ? 3 : 4;
    });
    in_child("epoll_wait", [&] {
        epoll_event e;
        return errno_of_call(HOOKED(epoll_wait)(set.n, &e, 1, 5));
    });
    in_child("usleep", [] { return errno_of_call(HOOKED(usleep)(5000)); });
    in_child("nanosleep", [&] { return errno_of_call(HOOKED(nanosleep)(&some, nullptr)); });
    in_child("clock_nanosleep",
             [&] { return HOOKED(clock_nanosleep)(CLOCK_MONOTONIC, 0, &some, nullptr); });
    child_in_the_same_memory(t, "sched_yield", [] { return HOOKED(sched_yield)(); });
    child_in_the_same_memory(t, "poll, again and again", [&] {
        for (int i = 0; i < 100; ++i) HOOKED(poll)(both, 2, 0);
        return 1;
    });
    child_in_the_same_memory(t, "a name", [] {
        addrinfo* all = nullptr;
        const int r = HOOKED(getaddrinfo)("localhost", "80", nullptr, &all);
        if (all != nullptr) ::freeaddrinfo(all);
        return r;
    });
    HOOKED(write)(s.b, "x", 1);
    child_in_the_same_memory(t, "ready", [&] { return HOOKED(poll)(both, 2, 1000); });
}

POSIX_CASE(a_child_in_the_same_memory_waits_for_locks_with_its_thread) {
    char path[] = "/tmp/weft-locked-XXXXXX";
    const one_fd file(HOOKED(mkstemp)(path));
    const one_fd again(HOOKED(open)(path, O_RDWR));
    ::unlink(path);
    struct ::flock whole{};
    const auto set = [&](short type) {
        whole.l_type = type;
        HOOKED(fcntl)(file.n, F_SETLK, &whole);
    };
    const auto unlocked_soon = [&](auto unlock, const char* what, auto f) {
        std::thread other([=] {
            const timespec some = {0, 20'000'000};
            ::nanosleep(&some, nullptr);
            unlock();
        });
        child_in_the_same_memory(t, what, f);
        other.join();
    };
    set(F_WRLCK);
    unlocked_soon([&] { set(F_UNLCK); }, "a record",
                  [&] {
                      struct ::flock w{};
                      w.l_type = F_WRLCK;
                      return errno_of_call(HOOKED(fcntl)(file.n, F_SETLKW, &w));
                  });
    set(F_WRLCK);
    unlocked_soon([&] { set(F_UNLCK); }, "lockf",
                  [&] { return errno_of_call(HOOKED(lockf)(file.n, F_LOCK, 0)); });
    HOOKED(flock)(file.n, LOCK_EX);
    unlocked_soon([&] { HOOKED(flock)(file.n, LOCK_UN); }, "flock",
                  [&] { return errno_of_call(HOOKED(flock)(again.n, LOCK_SH)); });
}

// With any handler that has SA_RESTART: none of these calls is restarted.
POSIX_CASE(a_handler_ends_the_wait_of_a_child_in_the_same_memory) {
    const auto s = fd_pair::sockets();
    struct sigaction before, restart = {};
    restart.sa_handler = [](int) {};
    restart.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &restart, &before);
    const auto begin = [] {
        const itimerval soon = {{0, 0}, {0, 5000}};
        ::setitimer(ITIMER_REAL, &soon, nullptr);
    };
    pollfd p = {s.a, POLLIN, 0};
    child_in_the_same_memory(t, "poll", [&] {
        begin();
        return errno_of_call(HOOKED(poll)(&p, 1, 20'000));
    });
    child_in_the_same_memory(t, "nanosleep", [&] {
        begin();
        const timespec long_time = {20, 0};
        return errno_of_call(HOOKED(nanosleep)(&long_time, nullptr));
    });
    ::sigaction(SIGALRM, &before, nullptr);
}

class hooked_children : public weft::testing::on_each_driver {};

TEST_P(hooked_children, are_awaited_while_other_fibers_run) {
    run([] {
        told_child c;
        bool waits = true;
        unsigned turns = 0;
        fiber other([&] {
            while (waits && turns < 20) {
                ++turns;
                ::usleep(1000);
            }
            c.end(1);
        });
        EXPECT_EQ(::wait(nullptr), c.id);
        waits = false;
        other.join();
        EXPECT_EQ(turns, 20u);
    });
}

TEST_P(hooked_children, run_a_command_while_other_fibers_run) {
    run([] {
        const auto p = fd_pair::pipe();
        fiber other([&] {
            ::usleep(5000);
            EXPECT_EQ(::write(p.b, "x\n", 2), 2);
        });
        const std::string command = "read x </dev/fd/" + std::to_string(p.a) + "; exit 3";
        EXPECT_EQ(::system(command.c_str()), 0x300);
    });
}

TEST_P(hooked_children, are_not_reaped_by_a_wait_that_a_stop_ends) {
    run([] {
        told_child c;
        fiber stopped([] {
            EXPECT_EQ(::wait(nullptr), -1);
            EXPECT_EQ(errno, ECANCELED);
        });
        ::usleep(5000);
        stopped.request_stop();
        stopped.join();
        c.end(6);
        int status = 0;
        EXPECT_EQ(::wait(&status), c.id);
        EXPECT_EQ(WEXITSTATUS(status), 6);
    });
}

INSTANTIATE_ON_DRIVERS(hooked_children);

}  // namespace
