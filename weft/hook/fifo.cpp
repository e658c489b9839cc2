#include "weft/hook/detail/fifo.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {
namespace {

// An fd that is closed with the object, unless it is released.
class owned_number {
public:
    explicit owned_number(int fd) noexcept : fd_(opened(fd)) {}
    owned_number(const owned_number&) = delete;
    owned_number& operator=(const owned_number&) = delete;
    ~owned_number() { set(-1); }

    int get() const noexcept { return fd_; }
    int release() noexcept { return std::exchange(fd_, -1); }
    void set(int fd) noexcept {
        const int before = errno;
        if (fd_ >= 0) {
            leave_table(fd_);
            real::close(fd_);
        }
        fd_ = opened(fd);
        errno = before;
    }

private:
    int fd_;
};

// For an fd that was opened nonblocking for reading, when the pipe had no writer: whether it has a
// writer by now, or has had one. A read into an invalid buffer takes nothing.
bool has_had_writer(int fd) noexcept {
    if (::syscall(SYS_read, fd, sizeof(int), 1) != 0) return true;  // EAGAIN, or EFAULT: bytes
    ::pollfd p = {fd, 0, 0};
    return real::poll(&p, 1, 0) > 0;  // hung up: the writer has left
}

constexpr auto longest_pause = std::chrono::milliseconds(16);

}  // namespace

bool is_fifo_that_waits(int directory, const char* path, int flags) noexcept {
    const int way = flags & O_ACCMODE;
    if ((way != O_RDONLY && way != O_WRONLY) || (flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) != 0)
        return false;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return false;
    const int before = errno;
    struct ::stat s;
    const int follow = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
    const bool is = ::fstatat(directory, path, &s, follow) == 0 && S_ISFIFO(s.st_mode);
    errno = before;
    return is;
}

int open_fifo(int directory, const char* path, int flags) {
    const int before = errno;
    // The fd that the file will have keeps it open, since its name may be removed meanwhile.
    owned_number place(real::openat(directory, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW), 0));
    if (place.get() < 0) return -1;
    char name[32];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", place.get());
    const int by = (flags & ~(O_CREAT | O_NOFOLLOW)) | O_NONBLOCK;
    const auto open = [&] {
        const int fd = real::open(name, by, 0);
        // Without /proc it is opened by its name.
        return fd >= 0 || errno != ENOENT ? fd : real::openat(directory, path, by, 0);
    };
    const bool reads = (flags & O_ACCMODE) == O_RDONLY;
    auto pause = std::chrono::milliseconds(1);
    interruptible_from_first_wait around;
    const auto wait = [&] {
        const int why = until(after(now(), pause), around.before_wait(ended_by::plain_handler));
        pause = std::min(2 * pause, longest_pause);
        return why;
    };
    {
        owned_number fd(open());
        for (; fd.get() < 0; fd.set(open())) {
            if (errno != ENXIO) return -1;
            if (const int why = wait(); why != 0) return errno = why, -1;
        }
        leave_table(place.get());
        if (real::dup3(fd.get(), place.get(), flags & O_CLOEXEC) < 0) return -1;
    }
    while (reads && !has_had_writer(place.get()))
        if (const int why = wait(); why != 0) return errno = why, -1;
    const int set = real::fcntl(place.get(), F_GETFL, nullptr);
    if (set < 0) return place.release(), -1;  // closed meanwhile, like all others
    const auto waits = static_cast<std::uintptr_t>(set & ~O_NONBLOCK);
    real::fcntl(place.get(), F_SETFL, reinterpret_cast<void*>(waits));
    errno = before;
    return place.release();
}

}  // namespace weft::hook
