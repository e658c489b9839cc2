#include "weft/io/signal_set.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "weft/base/detail/system_mutex.hpp"

namespace weft {
namespace {

constexpr int most_signals = 65;

// The former dispositions of the signals in the open sets. One object for the process, as signals
// are the process's.
constinit struct {
    detail::system_mutex lock;
    bool taken[most_signals] = {};
    struct ::sigaction before[most_signals] = {};
} dispositions;

bool can_be_waited_for(int number) noexcept {
    switch (number) {
        case SIGKILL:
        case SIGSTOP:
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
        case SIGSYS:
        case SIGABRT:
            return false;
        default:
            // Between the two ranges are the signals of the C library.
            return (number > 0 && number < 32) ||
                   (number >= SIGRTMIN && number <= SIGRTMAX && number < most_signals);
    }
}

// The handler, on a thread that does not block the signal: blocks it there once the handler has
// returned, and sends the signal again, to a thread that blocks it. A process may send itself a
// signal with another's siginfo only by the ID of the sending thread.
void block_and_resend(int number, ::siginfo_t* info, void* context) {
    const int kept = errno;
    ::sigaddset(&static_cast<::ucontext_t*>(context)->uc_sigmask, number);
    if (::syscall(SYS_rt_sigqueueinfo, ::gettid(), number, info) != 0) ::kill(::getpid(), number);
    errno = kept;
}

bool has_signal(const ::sigset_t& s, int number) noexcept { return ::sigismember(&s, number) == 1; }

// All of them, or none.
bool take_dispositions(const ::sigset_t& signals) noexcept {
    struct ::sigaction ours{};
    ours.sa_sigaction = block_and_resend;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ::sigfillset(&ours.sa_mask);
    const std::lock_guard held(dispositions.lock);
    for (int n = 1; n < most_signals; ++n)
        if (has_signal(signals, n) && dispositions.taken[n]) return false;
    for (int n = 1; n < most_signals; ++n) {
        if (!has_signal(signals, n)) continue;
        dispositions.taken[n] = true;
        ::sigaction(n, &ours, &dispositions.before[n]);
    }
    return true;
}

void restore_dispositions(const ::sigset_t& signals) noexcept {
    const std::lock_guard held(dispositions.lock);
    for (int n = 1; n < most_signals; ++n) {
        if (!has_signal(signals, n)) continue;
        ::sigaction(n, &dispositions.before[n], nullptr);
        dispositions.taken[n] = false;
    }
}

}  // namespace

result<signal_set> signal_set::open(std::initializer_list<int> numbers) {
    signal_set s;
    ::sigemptyset(&s.signals_);
    for (const int n : numbers) {
        if (!can_be_waited_for(n)) return failure(std::errc::invalid_argument);
        ::sigaddset(&s.signals_, n);
    }
    const int number = ::signalfd(-1, &s.signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (number < 0) return failure(std::error_code(errno, std::system_category()));
    std::error_code error;
    const detail::descriptor_ref ref = detail::descriptor_ref::adopt(number, 0, error);
    if (!ref) {
        ::close(number);
        return failure(error);
    }
    detail::descriptor owned(ref);
    // Blocked before the handlers are set: in this thread no handler runs.
    ::sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &s.signals_, &before);
    s.blocked_ = s.signals_;
    for (const int n : numbers)
        if (has_signal(before, n)) ::sigdelset(&s.blocked_, n);
    if (!take_dispositions(s.signals_)) {
        ::pthread_sigmask(SIG_UNBLOCK, &s.blocked_, nullptr);
        return failure(std::errc::device_or_resource_busy);
    }
    s.owned_ = std::move(owned);
    return s;
}

signal_set& signal_set::operator=(signal_set&& other) noexcept {
    if (this != &other) {
        close();
        owned_ = std::move(other.owned_);
        signals_ = other.signals_;
        blocked_ = other.blocked_;
    }
    return *this;
}

void signal_set::close() noexcept {
    if (!owned_.ref().close()) return;
    restore_dispositions(signals_);
    ::pthread_sigmask(SIG_UNBLOCK, &blocked_, nullptr);
}

signal_set::wait_operation::wait_operation(const detail::descriptor_ref& of,
                                           time_limit limit) noexcept
    : io_operation({}, sizeof info_, no_timeout, "a signal") {
    request_.what = detail::io_request::read;
    request_.of = of;
    request_.bytes = sizeof info_;
    set_limit(limit);
}

// From now on the operation stays at its address.
bool signal_set::wait_operation::ready() noexcept {
    request_.data = &info_;
    return io_operation::ready();
}

result<signal_info> signal_set::wait_operation::take(const waiter* w,
                                                     wait_status how) const noexcept {
    if (const transfer_result t = outcome(w, how); !t) return failure(t.error());
    signal_info s;
    s.number = static_cast<int>(info_.ssi_signo);
    s.code = info_.ssi_code;
    s.sender = static_cast<::pid_t>(info_.ssi_pid);
    s.user = info_.ssi_uid;
    s.value = info_.ssi_int;
    return s;
}

signal_set::wait_operation signal_set::async_wait(time_limit limit) const noexcept {
    return {owned_.ref(), limit};
}

result<signal_info> signal_set::wait(time_limit limit, std::source_location caller) const {
    auto op = async_wait(limit);
    return detail::block_for(op, caller);
}

}  // namespace weft
