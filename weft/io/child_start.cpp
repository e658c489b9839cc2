#include "weft/io/detail/child_start.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "weft/base/detail/refusals.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {
namespace {

// For code that runs in the child: a sanitizer would record there what it takes for the parent's.
#define WEFT_IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

constexpr int shares_memory = WEFT_TSAN ? 0 : CLONE_VM;

// Two pages are used. The rest is for what a dynamic linker does at a first call, and for
// ThreadSanitizer.
constexpr std::size_t stack_bytes = 64 << 10;

// Size of a signal set as the kernel counts it.
constexpr std::size_t signal_bytes = _NSIG / 8;

// Stored below the child's stack.
struct start {
    const child_plan* plan;
    int error;
};

// Each of these functions returns zero or an errno value.

// An ignored signal stays ignored, except SIGPIPE. A handler belongs to this program and must not
// run in the child, not even before the new program starts.
WEFT_IN_CHILD int reset_signals() noexcept {
    static const unsigned long by_default[20] = {};
    for (int n = 1; n < _NSIG; ++n) {
        unsigned long is[20];  // begins with the handler
        if (::syscall(SYS_rt_sigaction, n, nullptr, is, signal_bytes) != 0) return errno;
        const bool is_ignored = is[0] == 1;
        if (is[0] == 0 || (is_ignored && n != SIGPIPE)) continue;
        if (::syscall(SYS_rt_sigaction, n, by_default, nullptr, signal_bytes) != 0) return errno;
    }
    return 0;
}

WEFT_IN_CHILD int stand(const child_plan& p) noexcept {
    if (p.leads_session && ::syscall(SYS_setsid) < 0) return errno;
    if (p.group >= 0 && ::syscall(SYS_setpgid, 0, p.group) != 0) return errno;
    return 0;
}

WEFT_IN_CHILD int set_streams(const child_plan& p) noexcept {
    for (int i = 0; i < 3; ++i)
        if (p.streams[i] >= 0 && ::syscall(SYS_dup3, p.streams[i], i, 0) < 0) return errno;
    if (p.err_is_out && ::syscall(SYS_dup3, 1, 2, 0) < 0) return errno;
    if (p.takes_terminal && ::syscall(SYS_ioctl, 0, TIOCSCTTY, 0L) != 0) return errno;
    return 0;
}

WEFT_IN_CHILD int set_limits(const child_plan& p) noexcept {
    for (std::size_t i = 0; i < p.limit_count; ++i) {
        const child_limit& l = p.limits[i];
        if (::syscall(SYS_prlimit64, 0, l.resource, l.figures, nullptr) != 0) return errno;
    }
    return 0;
}

// Tries the next path if a file is missing or may not be executed, as a shell does.
WEFT_IN_CHILD int execute(const child_plan& p) noexcept {
    int error = ENOENT;
    bool is_denied = false;
    for (const char* const* place = p.places; *place != nullptr; ++place) {
        ::syscall(SYS_execve, *place, p.command, p.environment);
        error = errno;
        switch (error) {
            case EACCES:
                is_denied = true;
                break;
            case ENOENT:
            case ENOTDIR:
            case ENODEV:
            case ENAMETOOLONG:
            case ESTALE:
            case ETIMEDOUT:
                break;
            default:
                return error;
        }
    }
    return is_denied ? EACCES : error;
}

WEFT_IN_CHILD int become(const child_plan& p) noexcept {
    if (const int e = reset_signals(); e != 0) return e;
    if (const int e = stand(p); e != 0) return e;
    if (const int e = set_streams(p); e != 0) return e;
    if (p.working_directory != nullptr && ::syscall(SYS_chdir, p.working_directory) != 0)
        return errno;
    if (const int e = set_limits(p); e != 0) return e;
    static const unsigned long none[16] = {};
    if (::syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, nullptr, signal_bytes) != 0) return errno;
    return execute(p);
}

WEFT_IN_CHILD int run_child(void* of) noexcept {
    start& s = *static_cast<start*>(of);
    s.error = become(*s.plan);
    for (;;) ::syscall(SYS_exit_group, 127);
}

#undef WEFT_IN_CHILD

// Blocks all signals, also those that the C library keeps for itself.
class without_signals {
public:
    without_signals() noexcept {
        unsigned long every[words];
        std::fill_n(every, words, ~0ul);
        if (::syscall(SYS_rt_sigprocmask, SIG_SETMASK, every, before_, signal_bytes) != 0)
            error_ = errno;
    }
    without_signals(const without_signals&) = delete;
    ~without_signals() {
        refusals of_mask;
        while (error_ == 0 &&
               ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, before_, nullptr, signal_bytes) != 0)
            of_mask.met("rt_sigprocmask", errno);
    }

    int error() const noexcept { return error_; }

private:
    static constexpr std::size_t words = sizeof(::sigset_t) / sizeof(unsigned long);

    unsigned long before_[words];
    int error_ = 0;
};

}  // namespace

result<::pid_t> start_child(const child_plan& plan) noexcept {
    void* const memory = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return failure(std::error_code(errno, std::system_category()));
    start* const s = ::new (memory) start{&plan, 0};
    ::pid_t id = -1;
    int error = 0;
    {
        const without_signals meanwhile;
        error = meanwhile.error();
        if (error == 0) {
            id = ::clone(run_child, static_cast<std::byte*>(memory) + stack_bytes,
                         shares_memory | CLONE_VFORK | SIGCHLD, s);
            error = id < 0 ? errno : s->error;
        }
    }
    ::munmap(memory, stack_bytes);
    if (error == 0) return id;
    while (id > 0 && ::waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
    }
    return failure(std::error_code(error, std::system_category()));
}

}  // namespace weft::detail
