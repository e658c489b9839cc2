// Locks of files: fcntl, lockf and flock.
//
// Model: none, its words are a thread's id and a request that is made again until it is heard.

#include <sys/file.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <new>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/record_lock.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook {
namespace {

// A signal whose handler ends a wait; 0 if no signal is free.
int ending_signal() noexcept {
    static const int number = [] {
        for (int n = SIGRTMAX; n >= SIGRTMIN; --n) {
            struct sigaction now{};
            if (real::sigaction(n, nullptr, &now) != 0 || now.sa_handler != SIG_DFL ||
                (now.sa_flags & SA_SIGINFO) != 0)
                continue;
            now.sa_handler = [](int) {};
            now.sa_flags = 0;  // the call ends
            if (real::sigaction(n, &now, nullptr) == 0) return n;
        }
        return 0;
    }();
    return number;
}

class file_lock_call : public offloaded_call {
public:
    int result() const noexcept { return result_; }
    int error() const noexcept { return error_; }
    // The caller takes the result, and owns the lock from now on.
    void take() noexcept { taken_ = true; }

    void run() noexcept final {
        sigset_t open;
        ::sigemptyset(&open);
        if (signal_ != 0) ::sigaddset(&open, signal_);
        ::pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
        thread_.store(static_cast<::pid_t>(::syscall(SYS_gettid)), std::memory_order_relaxed);
        do {
            if (asked_.load(std::memory_order_relaxed)) {
                error_ = ECANCELED;
                break;
            }
            result_ = wait_for_lock();
            error_ = errno;
        } while (result_ != 0 && error_ == EINTR);
        thread_.store(0, std::memory_order_relaxed);
    }
    void hurry() noexcept final {
        asked_.store(true, std::memory_order_relaxed);
        const ::pid_t thread = thread_.load(std::memory_order_relaxed);
        if (thread != 0 && signal_ != 0) ::syscall(SYS_tgkill, ::getpid(), thread, signal_);
    }
    bool uses_files() const noexcept final { return true; }

protected:
    // The call that waits, and the call that undoes it.
    virtual int wait_for_lock() noexcept = 0;
    virtual void unlock() noexcept = 0;
    // Called by the most derived destructor, which can still call unlock().
    void release_untaken() noexcept {
        if (result_ == 0 && !taken_) unlock();
    }

private:
    const int signal_ = ending_signal();
    // Orders: relaxed, an id, for the signal, and a request that stands for itself. One that is
    // missed is made again.
    atomic<::pid_t> thread_{0};  // the thread that waits
    atomic<bool> asked_{false};  // asked to end
    int result_ = -1;
    int error_ = ECANCELED;
    bool taken_ = false;
};

// A record lock. Uses the caller's file descriptor, because a close of another descriptor of the
// same file would unlock the record.
class record_lock_call final : public file_lock_call {
public:
    record_lock_call(int fd, int command, const struct ::flock& wanted) noexcept
        : fd_(fd), command_(command), wanted_(wanted) {}
    ~record_lock_call() override { release_untaken(); }

private:
    int wait_for_lock() noexcept override { return real::fcntl(fd_, command_, &wanted_); }
    void unlock() noexcept override {
        wanted_.l_type = F_UNLCK;
        real::fcntl(fd_, command_ == F_SETLKW ? F_SETLK : F_OFD_SETLK, &wanted_);
    }

    const int fd_;
    const int command_;
    struct ::flock wanted_;
};

class flock_call final : public file_lock_call {
public:
    flock_call(int fd, int how) noexcept : fd_(fd), how_(how) {}
    ~flock_call() override { release_untaken(); }

private:
    int wait_for_lock() noexcept override { return real::flock(fd_, how_); }
    void unlock() noexcept override { real::flock(fd_, LOCK_UN); }

    const int fd_;
    const int how_;
};

int run_lock(file_lock_call* made) {
    const offloaded_ptr e(made);
    if (!e) return errno = ENOLCK, -1;
    const int before = errno;
    const int why = [&] {
        const interruptible here(ended_by::plain_handler);
        return run_offloaded(*e, "a lock of a file");
    }();
    // A stop or a handler may have ended the wait. If the lock was acquired nevertheless, the
    // caller owns it.
    if ((why == 0 || (e->is_posted() && e->is_over())) && e->result() == 0) {
        e->take();
        errno = before;
        return 0;
    }
    errno = why != 0 ? why : e->error();
    return -1;
}

// A record that is given relative to the file's position is fixed here, so that it does not move
// with the position.
void make_absolute(int fd, struct ::flock& f) noexcept {
    if (f.l_whence != SEEK_CUR) return;
    const off_t here = ::lseek(fd, 0, SEEK_CUR);
    if (here < 0) return;
    f.l_whence = SEEK_SET;
    f.l_start += here;
}

int lock_from_here(int fd, off_t bytes) {
    struct ::flock wanted{};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_CUR;
    wanted.l_len = bytes;
    return wait_for_record(fd, F_SETLKW, &wanted);
}

}  // namespace

int wait_for_record(int fd, int command, void* wanted) {
    const int before = errno;
    if (real::fcntl(fd, command == F_SETLKW ? F_SETLK : F_OFD_SETLK, wanted) == 0) return 0;
    if (errno != EAGAIN && errno != EACCES) return -1;
    errno = before;
    if (!is_own_process()) return real::fcntl(fd, command, wanted);
    struct ::flock record = *static_cast<const struct ::flock*>(wanted);
    make_absolute(fd, record);
    return run_lock(new (std::nothrow) record_lock_call(fd, command, record));
}

int in_fiber::lockf(int fd, int command, off_t bytes) {
    pay(price::lock);
    return command == F_LOCK ? lock_from_here(fd, bytes) : real::lockf(fd, command, bytes);
}
int in_fiber::lockf64(int fd, int command, off64_t bytes) {
    pay(price::lock);
    return command == F_LOCK ? lock_from_here(fd, bytes) : real::lockf64(fd, command, bytes);
}

int in_fiber::flock(int fd, int how) {
    pay(price::lock);
    const int before = errno;
    if ((how & LOCK_NB) != 0 || how == LOCK_UN) return real::flock(fd, how);
    if (real::flock(fd, how | LOCK_NB) == 0) return 0;
    if (errno != EWOULDBLOCK) return -1;
    errno = before;
    if (!is_own_process()) return real::flock(fd, how);
    return run_lock(new (std::nothrow) flock_call(fd, how));
}

}  // namespace weft::hook
