// Each system call that weft makes, refused: all of them, one alone, or all from one on, with each
// error that a sandbox, a limit or a shortage gives, on each driver.
//
// The law, of a process with the scenes of scenes.hpp: a scene is served, or it gets an error; or
// the process ends with one line of weft's that names the call, and a status. The process never
// spins, never hangs, and never reports a timeout where no event was delivered. What may time out,
// and what ends without weft's line, is in a table with its reason.
//
//   weft_refusals [--every]                             a share of the product, or all of it
//   weft_refusals --driver epoll --call read --error EPERM [--nth 3 | --from 3]    one, and what
//                                                      it says
//
// Exit: 0, 1 a law was broken, 2 misuse, 77 the process may not filter its calls.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/refusals/refused_call.hpp"
#include "test/refusals/scenes.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using weft::io_kind;
using namespace weft::testing::refusals;

// -- the product ------------------------------------------------------------------------------

struct call {
    const char* name;
    long number;
};
#define CALL(name) {#name, SYS_##name}
// As `strace -f` shows them of the scenes. Not futex: the C library's locks read no result of it;
// nor exit. Not getpid, gettid and kill: the target of a signal is then no longer this process.
constexpr call calls[] = {
    CALL(accept4),
    CALL(bind),
    CALL(chdir),
    CALL(clone3),
    CALL(close),
    CALL(connect),
    CALL(dup3),
    CALL(epoll_create1),
    CALL(epoll_ctl),
    CALL(epoll_pwait2),
    CALL(eventfd2),
    CALL(execve),
    CALL(fcntl),
    CALL(fstat),
    CALL(fsync),
    CALL(ftruncate),
    CALL(getpeername),
    CALL(getpgrp),
    CALL(getsid),
    CALL(getsockname),
    CALL(getsockopt),
    CALL(io_uring_enter),
    CALL(io_uring_register),
    CALL(io_uring_setup),
    CALL(ioctl),
    CALL(listen),
    CALL(lseek),
    CALL(madvise),
    CALL(membarrier),
    CALL(mmap),
    CALL(mprotect),
    CALL(munmap),
    CALL(nanosleep),
    CALL(newfstatat),
    CALL(openat),
    CALL(pidfd_open),
    CALL(pipe2),
    CALL(poll),
    CALL(pread64),
    CALL(preadv2),
    CALL(prlimit64),
    CALL(process_madvise),
    CALL(pwrite64),
    CALL(pwritev2),
    CALL(read),
    CALL(recvfrom),
    CALL(recvmsg),
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(rt_sigqueueinfo),
    CALL(sched_yield),
    CALL(sendmmsg),
    CALL(sendmsg),
    CALL(sendto),
    CALL(setpgid),
    CALL(setsid),
    CALL(setsockopt),
    CALL(shutdown),
    CALL(sigaltstack),
    CALL(signalfd4),
    CALL(socket),
    CALL(socketpair),
    CALL(unlink),
    CALL(vfork),
    CALL(wait4),
    CALL(waitid),
    CALL(write),
    CALL(writev),
    CALL(clock_nanosleep),
    CALL(epoll_wait),
    CALL(epoll_pwait),
    CALL(clone),
    CALL(uname),
};
#undef CALL

struct error {
    const char* name;
    int number;
};
#define ERROR(name) {#name, name}
constexpr error errors[] = {
    ERROR(EPERM), ERROR(ENOSYS), ERROR(ENOMEM),  ERROR(EMFILE),    ERROR(ENFILE),
    ERROR(EINTR), ERROR(EAGAIN), ERROR(ENOBUFS), ERROR(ECANCELED),
};
#undef ERROR

struct driver {
    const char* name;
    io_kind kind;
};
constexpr driver drivers[] = {
    {"epoll", io_kind::epoll}, {"io_uring", io_kind::io_uring}, {"poll", io_kind::poll}};

// Zero: each; -n: from the n-th on.
constexpr std::int64_t turns[] = {0, 1, 2, 3, 4, 6, 9, 14, 22, -2, -3, -5, -8, -13, -25};

// Each of its calls interrupted: no system does that, and what is not a sleep is simply made again.
bool is_possible(const call& c, const error& e, std::int64_t nth) {
    if (nth > 0 || e.number != EINTR) return true;
    const std::string_view n = c.name;
    return n.starts_with("epoll_") || n.starts_with("io_uring_") || n == "write";
}

struct refusal {
    const driver* on;
    const call* of;
    const error* with;
    std::int64_t nth;
};

// -- one of it --------------------------------------------------------------------------------

constexpr auto most_time = 40s;   // of a process
constexpr double most_cpu = 0.8;  // seconds, beyond which it is to sleep more than it works
constexpr int cannot_filter = 77;

struct shared {
    report scenes;
    std::atomic<std::uint64_t> made;
};

struct process {
    refusal what;
    ::pid_t id;
    int said;  // its standard error
    shared* seen;
    steady_clock::time_point began;
    bool killed = false;
};

struct ended {
    int status;
    double cpu, wall;
    bool killed;
    std::string said;
};

[[noreturn]] void be_child(const refusal& r, shared& s) {
    ::setenv("WEFT_IO", r.on->name, 1);
    prepare();
    if (!refuse(r.of->number, r.with->number, r.nth, s.made)) ::_exit(cannot_filter);
    try {
        play_all(r.on->kind, s.scenes);
    } catch (const std::exception& e) {
        // There is no driver, or no memory for one: the program gets an error.
        std::fprintf(stderr, "weft told the program: %s\n", e.what());
        ::_exit(3);
    }
    ::_exit(0);
}

process begin(const refusal& r) {
    process p{r, 0, ::memfd_create("said", MFD_CLOEXEC), nullptr, steady_clock::now()};
    void* const m =
        ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.said < 0 || m == MAP_FAILED) std::abort();
    p.seen = ::new (m) shared{};
    p.id = ::fork();
    if (p.id < 0) std::abort();
    if (p.id == 0) {
        ::dup2(p.said, STDERR_FILENO);
        be_child(r, *p.seen);
    }
    return p;
}

std::string all_of(int fd) {
    std::string all;
    char some[512];
    ::lseek(fd, 0, SEEK_SET);
    for (ssize_t n; all.size() < 4000 && (n = ::read(fd, some, sizeof some)) > 0;)
        all.append(some, static_cast<std::size_t>(n));
    return all;
}

double seconds(const ::timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

// -- the law ----------------------------------------------------------------------------------

bool one_of(std::string_view s, std::initializer_list<std::string_view> all) {
    return std::find(all.begin(), all.end(), s) != all.end();
}

// Results that are no error, but ask the caller to wait, or to try again.
bool may_time_out(const refusal& r, int scene) {
    static_cast<void>(scene);
    const std::string_view of = r.of->name, with = r.with->name;
    // After EAGAIN the call is repeated when the system reports readiness, which it has already
    // reported, and does not report twice.
    if (with == "EAGAIN") return true;
    // The system has closed nothing, so the peer sees no end.
    if (of == "close") return true;
    // An accept waits until there are descriptors again.
    if (of == "accept4") return one_of(with, {"EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"});
    return false;
}

// poll() reports again and again that a call that would block is ready: the system breaks its
// contract.
bool may_spin(const refusal& r) {
    return r.on->kind == io_kind::poll && r.with->number == EAGAIN && r.nth <= 0;
}

// Where there is a line, but not weft's; or none can be written.
bool ends_without_line(const refusal& r, const std::string& said) {
    const std::string_view of = r.of->name;
    if (one_of(of, {"write", "writev"})) return true;
    static_cast<void>(said);
    return false;
}

std::string fault_of(const refusal& r, const ended& e, const report& scenes) {
    if (e.killed) return "hangs";
    if (e.cpu > most_cpu && e.cpu > e.wall / 2 && !may_spin(r)) return "spins";
    const bool whole = WIFEXITED(e.status) && WEXITSTATUS(e.status) == 0;
    if (WIFSIGNALED(e.status) && WTERMSIG(e.status) != SIGABRT) return "dies";
    if (!whole && e.said.find("weft") == std::string::npos && !ends_without_line(r, e.said))
        return "ends without a line";
    for (int i = 0; i < scene_count(); ++i) {
        const outcome o = scenes.of[i];
        if (o == outcome::wrong) return std::string("is wrong: ") + name_of_scene(i);
        if (o == outcome::timed_out && whole && !may_time_out(r, i))
            return std::string("says nothing: ") + name_of_scene(i);
        if (o == outcome::none && whole) return "leaves a scene out";
    }
    return "";
}

std::string text_of(const refusal& r) {
    std::string s = std::string("--driver ") + r.on->name + " --call " + r.of->name + " --error " +
                    r.with->name;
    if (r.nth > 0) s += " --nth " + std::to_string(r.nth);
    if (r.nth < 0) s += " --from " + std::to_string(-r.nth);
    return s;
}

std::string text_of(const ended& e, const shared& s) {
    std::string text;
    for (int i = 0; i < scene_count(); ++i)
        text += "-=!t?"[static_cast<int>(s.scenes.of[i].load())];
    text += "  " + std::to_string(s.made.load()) + " calls, cpu " + std::to_string(e.cpu) + " of " +
            std::to_string(e.wall) + " s, ";
    text += WIFEXITED(e.status) ? "status " + std::to_string(WEXITSTATUS(e.status))
                                : std::string(::strsignal(WTERMSIG(e.status)));
    return text + "\n" + e.said;
}

struct tally {
    int run = 0, faults = 0, refused = 0;
};

// Some at a time: most of the time they wait.
tally run_all(const std::vector<refusal>& all, bool tells) {
    constexpr std::size_t at_once = 6;
    std::vector<process> running;
    tally t;
    std::size_t next = 0;
    while (next != all.size() || !running.empty()) {
        while (running.size() < at_once && next != all.size())
            running.push_back(begin(all[next++]));
        for (std::size_t i = 0; i != running.size();) {
            process& p = running[i];
            ended e{};
            ::rusage used{};
            const ::pid_t id = ::wait4(p.id, &e.status, WNOHANG, &used);
            if (id == 0 && !p.killed && steady_clock::now() - p.began > most_time) {
                p.killed = true;
                ::kill(p.id, SIGKILL);
            }
            if (id != p.id) {
                ++i;
                continue;
            }
            e.killed = p.killed;
            e.cpu = seconds(used.ru_utime) + seconds(used.ru_stime);
            e.wall = std::chrono::duration<double>(steady_clock::now() - p.began).count();
            e.said = all_of(p.said);
            ++t.run;
            if (WIFEXITED(e.status) && WEXITSTATUS(e.status) == cannot_filter) {
                ++t.refused;
            } else {
                const std::string fault = fault_of(p.what, e, p.seen->scenes);
                t.faults += !fault.empty();
                if (!fault.empty() || tells)
                    std::printf("%s: %s\n    %s\n", text_of(p.what).c_str(),
                                fault.empty() ? "well" : fault.c_str(),
                                text_of(e, *p.seen).c_str());
                std::fflush(stdout);
            }
            ::close(p.said);
            ::munmap(p.seen, sizeof(shared));
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        }
        std::this_thread::sleep_for(2ms);
    }
    return t;
}

// In a namespace of processes of its own, where that is allowed: no signal leaves it.
int apart(int (*f)(const std::vector<refusal>&), const std::vector<refusal>& all) {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return f(all);
    const ::pid_t first = ::fork();
    if (first == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::exit(f(all));
    }
    int status = 0;
    while (::waitpid(first, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run_and_tell(const std::vector<refusal>& all) {
    const tally t = run_all(all, all.size() == 1);
    if (t.refused == t.run) {
        std::printf("skipped: the process may not filter its calls\n");
        return cannot_filter;
    }
    std::printf("%d processes, %d of them faulty\n", t.run - t.refused, t.faults);
    return t.faults == 0 ? 0 : 1;
}

template <std::size_t n, class T>
bool is_wanted(const T (&)[n], const T& one, const std::string& name) {
    return name.empty() || name == one.name;
}

}  // namespace

int main(int argc, char** argv) {
    std::string on, of, with;
    std::optional<std::int64_t> nth;
    bool every = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (option == "--every") {
            every = true;
            continue;
        }
        const char* const value = argv[++i];  // null behind the last
        if (value != nullptr && option == "--driver") {
            on = value;
        } else if (value != nullptr && option == "--call") {
            of = value;
        } else if (value != nullptr && option == "--error") {
            with = value;
        } else if (value != nullptr && option == "--nth") {
            nth = std::atoll(value);
        } else if (value != nullptr && option == "--from") {
            nth = -std::atoll(value);
        } else {
            std::fprintf(stderr,
                         "usage: %s [--every] [--driver D] [--call C] [--error E] [--nth N | "
                         "--from N]\n",
                         argv[0]);
            return 2;
        }
    }
    const bool chosen = !on.empty() || !of.empty() || !with.empty() || nth;
    // As a test one of so many is run: a prime, so that each call meets each error sooner or later.
    const std::size_t step = every || chosen ? 1 : 29;
    std::vector<refusal> all;
    std::size_t n = 0;
    for (const driver& d : drivers)
        for (const call& c : calls)
            for (const error& e : errors)
                for (const std::int64_t t : turns) {
                    if (!is_wanted(drivers, d, on) || !is_wanted(calls, c, of) ||
                        !is_wanted(errors, e, with) || (nth && *nth != t) || !is_possible(c, e, t))
                        continue;
                    if (n++ % step == 0) all.push_back({&d, &c, &e, t});
                }
    if (all.empty()) {
        std::fprintf(stderr, "there is no such refusal\n");
        return 2;
    }
    return apart(run_and_tell, all);
}
