#include "weft/io/standard_streams.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "weft/base/detail/line.hpp"

namespace weft {
namespace {

using core_ptr = std::shared_ptr<detail::stream_core>;

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

// The streams that were made nonblocking although other processes share their open file
// descriptions. Several of the three may share one, and each may be opened here more than once:
// nothing is restored while any is in use.
constinit struct {
    std::mutex lock;
    unsigned held = 0;
    bool changed[3] = {};
} shared;

// True: a leave_shared() is owed.
bool enter_shared(int number) noexcept {
    const std::lock_guard held(shared.lock);
    const int flags = ::fcntl(number, F_GETFL);
    const bool blocks = flags >= 0 && (flags & O_NONBLOCK) == 0;
    if (flags < 0 || (!blocks && shared.held == 0)) return false;
    if (blocks && ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0) return false;
    if (blocks) shared.changed[number] = true;
    ++shared.held;
    return true;
}
void leave_shared() noexcept {
    const std::lock_guard held(shared.lock);
    if (--shared.held != 0) return;
    for (const int number : {0, 1, 2}) {
        if (!std::exchange(shared.changed[number], false)) continue;
        const int flags = ::fcntl(number, F_GETFL);
        if (flags >= 0) static_cast<void>(::fcntl(number, F_SETFL, flags & ~O_NONBLOCK));
    }
}

struct shared_core final : detail::stream_core {
    ~shared_core() { leave_shared(); }
};

// Opens the file of an fd once more; -1 if that cannot be done.
int open_anew(int number, int access, bool is_device) noexcept {
    const int flags = access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    int pty = 0;
    if (is_device && ::ioctl(number, TIOCGPTN, &pty) == 0) return -1;  // it would be another pty
    detail::line path;
    path.text("/proc/self/fd/").number(static_cast<unsigned>(number)).terminate();
    const int fresh = ::open(path.data(), flags);
    if (fresh >= 0 || !is_device) return fresh;
    // It may belong to another user, and still be the terminal of this session.
    const bool is_own = ::isatty(number) == 1 && ::tcgetsid(number) == ::getsid(0);
    return is_own ? ::open("/dev/tty", flags) : -1;
}

// Replaces hold_pipe() for a duplicate, after enter_shared().
result<core_ptr> hold_shared(int copy) noexcept {
    result<core_ptr> held = detail::hold_pipe(copy);
    if (!held) {
        leave_shared();
        return held;
    }
#if WEFT_EXCEPTIONS
    try {
#endif
        auto core = std::make_shared<shared_core>();
        core->owned = std::move((*held)->owned);
        core->reads_by = (*held)->reads_by;
        core->writes_by = (*held)->writes_by;
        return core_ptr(std::move(core));
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        leave_shared();
        return failure(std::errc::not_enough_memory);
    }
#endif
}

result<core_ptr> hold_standard(int number, int access) noexcept {
    struct ::stat s;
    if (::fstat(number, &s) != 0) return failure(last_error());
    const bool is_device = S_ISCHR(s.st_mode);
    if (is_device || S_ISFIFO(s.st_mode)) {
        const int fresh = open_anew(number, access, is_device);
        if (fresh >= 0) return detail::hold_pipe(fresh);
    }
    const int copy = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return failure(last_error());
    if (S_ISSOCK(s.st_mode)) {
        result<detail::descriptor> owned = detail::own_stream(copy, 0);
        if (!owned) return failure(owned.error());
        return detail::hold_stream(*std::move(owned));
    }
    const bool is_file = S_ISREG(s.st_mode) || S_ISBLK(s.st_mode);
    return !is_file && enter_shared(number) ? hold_shared(copy) : detail::hold_pipe(copy);
}

}  // namespace

result<pipe_reader> standard_input() noexcept {
    result<core_ptr> core = hold_standard(0, O_RDONLY);
    if (!core) return failure(core.error());
    return pipe_reader(*std::move(core));
}

result<pipe_writer> standard_output() noexcept {
    result<core_ptr> core = hold_standard(1, O_WRONLY);
    if (!core) return failure(core.error());
    return pipe_writer(*std::move(core));
}

result<pipe_writer> standard_error() noexcept {
    result<core_ptr> core = hold_standard(2, O_WRONLY);
    if (!core) return failure(core.error());
    return pipe_writer(*std::move(core));
}

}  // namespace weft
