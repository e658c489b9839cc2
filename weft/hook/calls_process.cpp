// The end of children. The end of one child is awaited by a descriptor that is readable when it has
// ended; the end of any child or of a group, and the stop of a child, by a thread that waits in
// waitid() and takes nothing (child_watch.hpp).

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/child_watch.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook::in_fiber {
namespace {

// The awaited children, as waitid() names them.
struct children {
    idtype_t by;
    id_t id;
    int options;

    // A descriptor reports only the end of one child.
    bool is_end_of_one() const noexcept {
        constexpr int others =
            WSTOPPED | WCONTINUED | static_cast<int>(__WCLONE | __WALL | __WNOTHREAD);
        return by == P_PID && (options & others) == 0;
    }
};

int pidfd_of(id_t child) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, child, 0)); }

// The descriptor of a child, closed with the wait, however the wait ends.
struct child_end {
    int fd;
    explicit child_end(const children& of) noexcept
        : fd(of.is_end_of_one() ? opened(pidfd_of(of.id)) : -1) {}
    child_end(const child_end&) = delete;
    child_end& operator=(const child_end&) = delete;
    ~child_end() {
        if (fd >= 0) close_own(fd);
    }
};

// ask() is a call with WNOHANG: returns its result, 0 if nothing is there yet, or -1.
template <class Ask>
auto wait_for(const children& of, Ask ask) {
    const int before = errno;
    if (const auto r = ask(); r != 0) return r;
    const child_end end(of);
    // A descriptor that the program has made itself also reports only the end.
    constexpr int others = WSTOPPED | WCONTINUED;
    const bool is_given = of.by == P_PIDFD && (of.options & others) == 0;
    const int fd = is_given ? static_cast<int>(of.id) : end.fd;
    auto pause = std::chrono::microseconds(500);
    // Around all the waits: a handler that runs between two of them also belongs to the call.
    const interruptible here(ended_by::plain_handler);
    for (;;) {
        const snapshot seen = fd >= 0 ? look(fd) : snapshot{};
        if (const auto r = ask(); r != 0) {
            if (r > 0) errno = before;
            return r;
        }
        int why;
        if (fd >= 0) {
            why = until_ready(fd, seen, true, never, here);
        } else if ((of.options & __WNOTHREAD) != 0 || of.by == P_PIDFD) {
            // Only this thread may wait for such a child; or the pidfd may come to name another
            // process.
            why = until(after(now(), pause), here);
            pause = std::min(2 * pause, std::chrono::microseconds(16'000));
        } else {
            why = until_child(of.by, of.id, of.options, here);
        }
        if (why != 0) {
            errno = why;
            return static_cast<decltype(ask())>(-1);
        }
    }
}

children of_wait4(pid_t child, int options) noexcept {
    const int these = WEXITED | options;  // WUNTRACED is WSTOPPED
    if (child > 0) return {P_PID, static_cast<id_t>(child), these};
    if (child == -1) return {P_ALL, 0, these};
    // The group of this process is the one that it is in now.
    return {P_PGID, static_cast<id_t>(child == 0 ? ::getpgrp() : -child), these};
}

// libc's own system(), on a thread that has the fiber's signal mask, which the command inherits.
// SIGINT and SIGQUIT are therefore ignored by one count for the whole program.
class command_call final : public offloaded_call {
public:
    explicit command_call(const char* command) noexcept
        : command_(command != nullptr ? ::strdup(command) : nullptr),
          good_(command == nullptr || command_ != nullptr) {
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
    }
    ~command_call() override { std::free(command_); }

    bool is_good() const noexcept { return good_; }
    int result() const noexcept { return result_; }
    int error() const noexcept { return error_; }
    void run() noexcept override {
        ::sigset_t before;
        ::pthread_sigmask(SIG_SETMASK, &mask_, &before);
        result_ = real::system(command_);
        error_ = errno;
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

private:
    char* const command_;
    const bool good_;
    ::sigset_t mask_;
    int result_ = -1;
    int error_ = 0;
};

}  // namespace

pid_t wait4(pid_t child, int* status, int options, rusage* used) {
    pay(price::lock);
    constexpr int least = -2147483647 - 1;  // no group has this id
    if ((options & WNOHANG) != 0 || child == least || !is_own_process())
        return real::wait4(child, status, options, used);
    return wait_for(of_wait4(child, options),
                    [=] { return real::wait4(child, status, options | WNOHANG, used); });
}

pid_t waitpid(pid_t child, int* status, int options) {
    return in_fiber::wait4(child, status, options, nullptr);
}

pid_t wait3(int* status, int options, rusage* used) {
    return in_fiber::wait4(-1, status, options, used);
}

pid_t wait(int* status) { return in_fiber::wait4(-1, status, 0, nullptr); }

int waitid(idtype_t by, id_t id, siginfo_t* info, int options) {
    pay(price::lock);
    const bool is_not_to_wait =
        (options & WNOHANG) != 0 || (by == P_PIDFD && is_nonblocking(static_cast<int>(id)));
    if (is_not_to_wait || !is_own_process()) return real::waitid(by, id, info, options);
    siginfo_t unasked{};
    siginfo_t* const into = info != nullptr ? info : &unasked;
    const id_t those = by == P_PGID && id == 0 ? static_cast<id_t>(::getpgrp()) : id;
    const int r = wait_for(children{by, those, options}, [=] {
        if (real::waitid(by, id, into, options | WNOHANG) != 0) return -1;
        return into->si_pid != 0 ? 1 : 0;
    });
    return r < 0 ? -1 : 0;
}

int system(const char* command) {
    if (!is_own_process()) return real::system(command);
    const offloaded_ptr e(new (std::nothrow) command_call(command));
    if (!e || !e->is_good()) return errno = ENOMEM, -1;
    const int before = errno;
    if (const int why = run_offloaded(*e, "a command"); why != 0) return errno = why, -1;
    errno = e->result() < 0 ? e->error() : before;
    return e->result();
}

}  // namespace weft::hook::in_fiber
