#include "weft/io/quiet_write.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/atomic.hpp"

namespace weft::detail {
namespace {

constexpr int rwf_nosignal = 0x100;  // the C library's headers of today do not have it

// SIGPIPE is blocked in this thread while it lives.
class sigpipe_block {
public:
    sigpipe_block() noexcept {
        ::sigemptyset(&only_);
        ::sigaddset(&only_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
        // Of a thread that has not blocked it, none is pending.
        if (::sigismember(&before_, SIGPIPE) != 1) return;
        ::sigset_t pending;
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    }
    sigpipe_block(const sigpipe_block&) = delete;
    ~sigpipe_block() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

    // The write has raised it.
    void take_back() const noexcept {
        const ::timespec at_once{};
        if (was_pending_) return;
        while (::sigtimedwait(&only_, nullptr, &at_once) < 0 && errno == EINTR) {
        }
    }

private:
    ::sigset_t only_;
    ::sigset_t before_;
    bool was_pending_ = false;
};

std::int64_t or_error_of_write(std::int64_t n) noexcept {
    if (n >= 0) return n;
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

}  // namespace

std::int64_t write_with_sigpipe_blocked(int number, const void* data, std::size_t bytes) noexcept {
    const sigpipe_block blocked;
    const std::int64_t n = or_error_of_write(::write(number, data, bytes));
    if (n == -EPIPE) blocked.take_back();
    return n;
}

std::int64_t write_quietly(int number, const void* data, std::size_t bytes) noexcept {
    static atomic<bool> refused{false};
    // Relaxed, here and below: who does not see it yet asks once more.
    if (!refused.load(std::memory_order_relaxed)) {
        const ::iovec all = {const_cast<void*>(data), bytes};
        const std::int64_t n = or_error_of_write(::pwritev2(number, &all, 1, -1, rwf_nosignal));
        if (n != -EOPNOTSUPP && n != -ENOSYS) return n;
        refused.store(true, std::memory_order_relaxed);
    }
    return write_with_sigpipe_blocked(number, data, bytes);
}

}  // namespace weft::detail
