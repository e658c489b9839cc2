#include "weft/io/detail/write_nosignal.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/errno.hpp"

namespace weft::detail {
namespace {

constexpr int rwf_nosignal = 0x100;  // missing in the present headers of the C library

// Blocks SIGPIPE in this thread for a scope.
class sigpipe_block {
public:
    sigpipe_block() noexcept {
        ::sigemptyset(&only_);
        ::sigaddset(&only_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
        // None is pending in a thread that had not blocked it.
        if (::sigismember(&before_, SIGPIPE) != 1) return;
        ::sigset_t pending;
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    }
    sigpipe_block(const sigpipe_block&) = delete;
    ~sigpipe_block() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

    // The write has raised the signal: removes it.
    void take_back() const noexcept {
        const ::timespec at_once{};
        if (was_pending_) return;
        while (::sigtimedwait(&only_, nullptr, &at_once) < 0 && get_errno() == EINTR) {
        }
    }

private:
    ::sigset_t only_;
    ::sigset_t before_;
    bool was_pending_ = false;
};

std::int64_t or_error_of_write(std::int64_t n) noexcept {
    if (n >= 0) return n;
    const int why = get_errno();
    return why == EWOULDBLOCK ? -EAGAIN : -why;
}

std::int64_t write_blocked(int number, const ::iovec* parts, int count) noexcept {
    const sigpipe_block blocked;
    const std::int64_t n = or_error_of_write(::writev(number, parts, count));
    if (n == -EPIPE) blocked.take_back();
    return n;
}

// The system sends in pieces, and a later piece may raise the signal although an earlier one
// counts.
template <class F>
::ssize_t in_pieces(std::size_t bytes, F call) noexcept {
    ::ssize_t n;
    int why;
    {
        const sigpipe_block blocked;
        n = call();
        why = get_errno();
        if (n < static_cast<::ssize_t>(bytes)) blocked.take_back();
    }
    set_errno(why);
    return n;
}

}  // namespace

std::int64_t write_with_sigpipe_blocked(int number, const void* data, std::size_t bytes) noexcept {
    const ::iovec all = {const_cast<void*>(data), bytes};
    return write_blocked(number, &all, 1);
}

std::int64_t write_nosignal(int number, const void* data, std::size_t bytes) noexcept {
    const ::iovec all = {const_cast<void*>(data), bytes};
    return write_nosignal(number, &all, 1);
}

std::int64_t write_nosignal(int number, const ::iovec* parts, int count) noexcept {
    static atomic<bool> refused{false};
    // Relaxed, here and below: a caller that does not see the store yet makes one more call.
    if (!refused.load(std::memory_order_relaxed)) {
        const std::int64_t n =
            or_error_of_write(::pwritev2(number, parts, count, -1, rwf_nosignal));
        if (n != -EOPNOTSUPP && n != -ENOSYS) return n;
        refused.store(true, std::memory_order_relaxed);  // as above
    }
    return write_blocked(number, parts, count);
}

::ssize_t send_file_nosignal(int to, int from, std::uint64_t offset, std::size_t bytes) noexcept {
    auto at = static_cast<::off_t>(offset);
    return in_pieces(bytes, [&] { return ::sendfile(to, from, &at, bytes); });
}

::ssize_t splice_nosignal(int pipe, int to, std::size_t bytes) noexcept {
    constexpr unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    return in_pieces(bytes, [&] { return ::splice(pipe, nullptr, to, nullptr, bytes, flags); });
}

}  // namespace weft::detail
