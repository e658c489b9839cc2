// signal_set: waits for signals as for any other event, instead of handling them in handlers.
//
// Design: while the set is open its signals are blocked, so they are pending in the system until
// they are read, one at a time, each with its sender. The restrictions of signal handlers do not
// apply: a signal is a value.
//
// Threads. Each thread has its own mask of blocked signals: open() sets that of the calling thread,
// and threads that it starts later inherit it; so open a set before anything else. For threads that
// exist already the set has a handler: a thread that gets a signal sends it back to the process,
// with its sender, and blocks it from then on, until the thread ends.
//
//      kill(2) --> thread that blocks ------------------------> pending --> wait()
//              \-> thread that does not: the handler, once --/
//
// Limits: signals for the process (kill, sigqueue, a terminal). A signal that is sent to a single
// thread (raise, pthread_kill) is reported if that thread waits on its own loop. A signal that
// comes again before it was read counts once, except those from SIGRTMIN on. A program that is
// executed inherits the blocked signals, but not if weft::process starts it.
//
//   auto signals = weft::signal_set::open({SIGINT, SIGTERM}).value();
//   auto s = signals.wait();                            // or co_await signals.async_wait()
//   if (s) log("signal", s->number, "of process", s->sender);
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <initializer_list>
#include <source_location>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// A signal that has come, as sigaction(2) describes it.
struct signal_info {
    int number = 0;
    int code = 0;        // why, as sigaction(2) has it: SI_USER, SI_QUEUE, SI_KERNEL, CLD_EXITED
    ::pid_t sender = 0;  // zero: the system
    ::uid_t user = 0;    // the sender's
    int value = 0;       // from sigqueue(3)
};

class signal_set {
public:
    class wait_operation;

    signal_set() noexcept = default;  // none
    signal_set(signal_set&& other) noexcept
        : owned_(std::move(other.owned_)), signals_(other.signals_), blocked_(other.blocked_) {}
    signal_set& operator=(signal_set&& other) noexcept;
    // As close(): the signals are handled as before.
    ~signal_set() { close(); }

    // invalid_argument: a signal that cannot be waited for: SIGKILL, SIGSTOP, and what a thread
    // causes itself (SIGSEGV, SIGABRT and similar). device_or_resource_busy: it is in another set.
    static result<signal_set> open(std::initializer_list<int> numbers);

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // The next signal. Callers may wait concurrently: each signal goes to one of them.
    [[nodiscard]] wait_operation async_wait(time_limit limit = {}) const noexcept;
    result<signal_info> wait(time_limit limit = {},
                             std::source_location caller = std::source_location::current()) const;

    // Restores what the signals did before, also for those that came and were not waited for;
    // unblocks them in the calling thread, which should be that of open(). Waits end with
    // errc::closed, now and later.
    void close() noexcept;

private:
    detail::descriptor owned_;
    ::sigset_t signals_{};
    ::sigset_t blocked_{};  // blocked by open(), and not before
};

class signal_set::wait_operation final : public detail::io_operation {
public:
    wait_operation(const detail::descriptor_ref& of, time_limit limit) noexcept;
    bool ready() noexcept;
    result<signal_info> take(const waiter* w, wait_status how) const noexcept;

private:
    ::signalfd_siginfo info_;
};

}  // namespace weft
