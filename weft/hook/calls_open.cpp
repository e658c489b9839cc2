// Calls that open and close descriptors within libc, where no hook sees more of it: what is known
// of the fd, and what waits for it, belongs to another file.
//
// Model: none, one flag that is exchanged once.

#include <dirent.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/fifo.hpp"
#include "weft/hook/detail/file_call.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/stdio_lock.hpp"

namespace weft::hook {
namespace {

constexpr int is_fifo = -2;

// With options::files the name is looked up by the thread that opens it.
template <class Open>
int open_with(int directory, const char* path, int flags, Open open) {
    fiber_core* const f = hooked_fiber();
    if (f == nullptr) return opened(open());
    const cancellation_point here(f);
    const int fd =
        file_call([=] { return is_fifo_that_waits(directory, path, flags) ? is_fifo : open(); });
    return opened(fd == is_fifo ? open_fifo(directory, path, flags) : fd);
}

FILE* opened(FILE* file) noexcept {
    if (file != nullptr) hook::opened(::fileno(file));
    return file;
}
DIR* opened(DIR* directory) noexcept {
    if (directory != nullptr) hook::opened(::dirfd(directory));
    return directory;
}
using hook::opened;

void leave(FILE* file) noexcept {
    if (file == nullptr) return;
    if (const int fd = ::fileno(file); fd >= 0) leave_table(fd);
}

// The flags with which fopen(3) opens a file.
int flags_of(const char* mode) noexcept {
    int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC);
    for (const char* m = mode + 1; *m != '\0' && *m != ','; ++m) {
        if (*m == '+') flags = (flags & ~O_ACCMODE) | O_RDWR;
        if (*m == 'x') flags |= O_EXCL;
        if (*m == 'e') flags |= O_CLOEXEC;
    }
    return flags;
}

template <class Open>
FILE* fopen_with(const char* path, const char* mode, Open open) {
    if (hooked_fiber() == nullptr || std::strchr("rwa", *mode) == nullptr) return opened(open());
    const int flags = flags_of(mode);
    if (!is_fifo_that_waits(AT_FDCWD, path, flags)) return opened(open());
    const int fd = opened(open_fifo(AT_FDCWD, path, flags));
    if (fd < 0) return nullptr;
    FILE* const file = ::fdopen(fd, mode);
    if (file == nullptr) real::close(fd);
    return file;
}

// Writes the stream's buffer first, and closes the stream's file when the other one is open, as
// libc does. An fd of weft's own waits for the other end; as long as weft has both ends open,
// libc's open() does not wait.
FILE* freopen_fifo(const char* path, const char* mode, FILE* file) {
    static_cast<void>(real::fflush(file));
    const int end = open_fifo(AT_FDCWD, path, flags_of(mode) | O_CLOEXEC);
    const int why = errno;
    char name[32] = "";  // of no file: that fails, and leaves the stream closed
    if (end >= 0) std::snprintf(name, sizeof name, "/proc/self/fd/%d", end);
    const int both = end >= 0 ? real::open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0) : -1;
    FILE* const r = opened(real::freopen(name, mode, file));
    if (both >= 0) close_own(both);
    if (end >= 0) close_own(end);
    if (end < 0) errno = why;
    return r;
}

template <class Open>
FILE* freopen_with(const char* path, const char* mode, FILE* file, Open open) {
    const stdio_lock held(file);
    leave(file);
    const bool waits = hooked_fiber() != nullptr && path != nullptr &&
                       std::strchr("rwa", *mode) != nullptr &&
                       is_fifo_that_waits(AT_FDCWD, path, flags_of(mode));
    return waits ? freopen_fifo(path, mode, file) : opened(open());
}

// Writes what is left in the stream, closes it, and waits for its child. On a thread of its own,
// since libc does all three behind all hooks; and if its fiber is stopped, the thread does them
// nevertheless.
class pclose_call final : public offloaded_call {
public:
    explicit pclose_call(FILE* file) noexcept : file_(file) {}

    int answer() const noexcept {
        if (result_ < 0) errno = error_;
        return result_;
    }
    void run() noexcept override {
        // Once: relaxed, the pool's lock orders all else.
        if (begun_.exchange(true, std::memory_order_relaxed)) return;
        result_ = real::pclose(file_);
        error_ = errno;
    }

private:
    FILE* const file_;
    atomic<bool> begun_{false};
    int result_ = -1;
    int error_ = 0;
};

int pclose_in_fiber(FILE* file) {
    const int before = errno;
    const offloaded_ptr e(new (std::nothrow) pclose_call(file));
    if (!e) return real::pclose(file);
    const int why = run_offloaded(*e, "the end of a program");
    if (why == 0) {
        const int status = e->answer();
        if (status >= 0) errno = before;
        return status;
    }
    // The call may not have begun: the stream is closed whatever is requested of the fiber.
    e->keep();
    const bool goes_on = why != EAGAIN && pool_of_waits().post([own = &*e]() noexcept {
        own->run();
        own->release();
    });
    if (!goes_on) {
        e->release();
        e->run();
        return e->answer();
    }
    return errno = why, -1;
}

}  // namespace

namespace everywhere {

int open(const char* path, int flags, mode_t mode) {
    return open_with(AT_FDCWD, path, flags, [=] { return real::open(path, flags, mode); });
}
int open64(const char* path, int flags, mode_t mode) {
    return open_with(AT_FDCWD, path, flags, [=] { return real::open64(path, flags, mode); });
}
int openat(int directory, const char* path, int flags, mode_t mode) {
    return open_with(directory, path, flags,
                     [=] { return real::openat(directory, path, flags, mode); });
}
int openat64(int directory, const char* path, int flags, mode_t mode) {
    return open_with(directory, path, flags,
                     [=] { return real::openat64(directory, path, flags, mode); });
}
int __open_2(const char* path, int flags) {
    return open_with(AT_FDCWD, path, flags, [=] { return real::__open_2(path, flags); });
}
int __open64_2(const char* path, int flags) {
    return open_with(AT_FDCWD, path, flags, [=] { return real::__open64_2(path, flags); });
}
int __openat_2(int directory, const char* path, int flags) {
    return open_with(directory, path, flags,
                     [=] { return real::__openat_2(directory, path, flags); });
}
int __openat64_2(int directory, const char* path, int flags) {
    return open_with(directory, path, flags,
                     [=] { return real::__openat64_2(directory, path, flags); });
}
int creat(const char* path, mode_t mode) {
    return open_with(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                     [=] { return real::creat(path, mode); });
}
int creat64(const char* path, mode_t mode) {
    return open_with(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                     [=] { return real::creat64(path, mode); });
}
int open_by_handle_at(int mount, file_handle* handle, int flags) {
    return opened(real::open_by_handle_at(mount, handle, flags));
}

FILE* fopen(const char* path, const char* mode) {
    return fopen_with(path, mode, [=] { return real::fopen(path, mode); });
}
FILE* fopen64(const char* path, const char* mode) {
    return fopen_with(path, mode, [=] { return real::fopen64(path, mode); });
}
FILE* freopen(const char* path, const char* mode, FILE* file) {
    return freopen_with(path, mode, file, [=] { return real::freopen(path, mode, file); });
}
FILE* freopen64(const char* path, const char* mode, FILE* file) {
    return freopen_with(path, mode, file, [=] { return real::freopen64(path, mode, file); });
}
// The lock is found by the address alone, and outlives the stream.
int fclose(FILE* file) {
    const stdio_lock held(file);
    leave(file);
    return real::fclose(file);
}
int fcloseall() {
    const int r = real::fcloseall();
    leave_closed();
    return r;
}
FILE* tmpfile() { return opened(real::tmpfile()); }
FILE* tmpfile64() { return opened(real::tmpfile64()); }

int mkstemp(char* path) { return opened(real::mkstemp(path)); }
int mkstemp64(char* path) { return opened(real::mkstemp64(path)); }
int mkostemp(char* path, int flags) { return opened(real::mkostemp(path, flags)); }
int mkostemp64(char* path, int flags) { return opened(real::mkostemp64(path, flags)); }
int mkstemps(char* path, int suffix) { return opened(real::mkstemps(path, suffix)); }
int mkstemps64(char* path, int suffix) { return opened(real::mkstemps64(path, suffix)); }
int mkostemps(char* path, int suffix, int flags) {
    return opened(real::mkostemps(path, suffix, flags));
}
int mkostemps64(char* path, int suffix, int flags) {
    return opened(real::mkostemps64(path, suffix, flags));
}

DIR* opendir(const char* path) { return opened(real::opendir(path)); }
int closedir(DIR* directory) {
    if (directory != nullptr) leave_table(::dirfd(directory));
    return real::closedir(directory);
}

FILE* popen(const char* command, const char* mode) { return opened(real::popen(command, mode)); }
int pclose(FILE* file) {
    leave(file);
    return hooked_fiber() != nullptr && is_own_process() ? pclose_in_fiber(file)
                                                         : real::pclose(file);
}

int posix_openpt(int flags) { return opened(real::posix_openpt(flags)); }
int getpt() { return opened(real::getpt()); }
int openpty(int* master, int* slave, char* name, const termios* modes, const winsize* size) {
    const int r = real::openpty(master, slave, name, modes, size);
    if (r == 0) {
        opened(*master);
        opened(*slave);
    }
    return r;
}
// fd becomes the first three descriptors.
int login_tty(int fd) {
    const int r = real::login_tty(fd);
    if (r != 0) return r;
    leave_table(0u, 2u);
    if (fd > 2) leave_table(fd);
    return r;
}

int timerfd_create(clockid_t by, int flags) { return opened(real::timerfd_create(by, flags)); }
// For an existing descriptor signalfd() changes the mask alone.
int signalfd(int fd, const sigset_t* mask, int flags) {
    const int r = real::signalfd(fd, mask, flags);
    return fd == -1 ? opened(r) : r;
}
int epoll_create(int size) { return opened(real::epoll_create(size)); }
int epoll_create1(int flags) { return opened(real::epoll_create1(flags)); }
int inotify_init() { return opened(real::inotify_init()); }
int inotify_init1(int flags) { return opened(real::inotify_init1(flags)); }
int fanotify_init(unsigned flags, unsigned event_flags) {
    return opened(real::fanotify_init(flags, event_flags));
}
int memfd_create(const char* name, unsigned flags) {
    return opened(real::memfd_create(name, flags));
}
int pidfd_open(pid_t process, unsigned flags) { return opened(real::pidfd_open(process, flags)); }
int pidfd_getfd(int process, int fd, unsigned flags) {
    return opened(real::pidfd_getfd(process, fd, flags));
}

}  // namespace everywhere

int in_fiber::eventfd_read(int fd, eventfd_t* count) {
    return in_fiber::read(fd, count, sizeof *count) == ssize_t{sizeof *count} ? 0 : -1;
}
int in_fiber::eventfd_write(int fd, eventfd_t count) {
    return in_fiber::write(fd, &count, sizeof count) == ssize_t{sizeof count} ? 0 : -1;
}

}  // namespace weft::hook
