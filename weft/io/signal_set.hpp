// signal_set: waiting for signals like for anything else, in place of handlers.
//
// Its one idea: while the set lives its signals are blocked, and so wait in the system until they
// are read, one by one, with who has sent them. What a handler must not do is no concern: a signal
// is a value.
//
//   auto signals = weft::signal_set::open({SIGINT, SIGTERM}).value();
//   auto s = signals.wait();                            // or co_await signals.async_wait()
//   if (s) log("signal", s->number, "of process", s->sender);
//
// Threads. Each thread blocks signals for itself: open() does it for the calling one, and those
// that it begins from then on inherit it; so a set is best opened first of all. For the threads
// that are there already the set has a handler: whichever of them is given a signal hands it back
// to the process, with its sender, and blocks it from then on, until that thread ends.
//
//      kill(2) --> thread that blocks ------------------------> pending --> wait()
//              \-> thread that does not: the handler, once --/
//
// Limits: signals for the process (kill, sigqueue, a terminal). One that is sent to a single thread
// (raise, pthread_kill) is seen if that thread waits on its own loop. The same signal that comes
// again before it was read is one, except those from SIGRTMIN on. A program that is executed
// inherits what is blocked, but not if it is begun by weft::process.
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
#include "weft/io/io_operation.hpp"
#include "weft/wait/await.hpp"

namespace weft {

struct signal_info {
    int number = 0;
    int code = 0;        // why, as sigaction(2) has it: SI_USER, SI_QUEUE, SI_KERNEL, CLD_EXITED
    ::pid_t sender = 0;  // zero: the system
    ::uid_t user = 0;    // the sender's
    int value = 0;       // of sigqueue(3)
};

class signal_set {
    using place_t = std::source_location;

public:
    class waiting;

    signal_set() noexcept = default;  // none
    signal_set(signal_set&& other) noexcept
        : owned_(std::move(other.owned_)), signals_(other.signals_), blocked_(other.blocked_) {}
    signal_set& operator=(signal_set&& other) noexcept;
    ~signal_set() { close(); }

    // invalid_argument: what cannot be waited for: SIGKILL, SIGSTOP, and what a thread does to
    // itself (SIGSEGV, SIGABRT and their kind). device_or_resource_busy: it is in another set.
    static result<signal_set> open(std::initializer_list<int> numbers);

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // The next one. Any number of parties may wait at once: each signal is one party's.
    [[nodiscard]] waiting async_wait(time_point deadline = never) const noexcept;
    result<signal_info> wait(time_point deadline = never, place_t place = place_t::current()) const;

    // The signals do what they did before, also those that came and were not waited for; they are
    // blocked no more in the calling thread, which should be that of open(). A waiter is told
    // errc::closed, then and later.
    void close() noexcept;

private:
    descriptor owned_;
    ::sigset_t signals_{};
    ::sigset_t blocked_{};  // by open(), and not before
};

class signal_set::waiting final : public detail::io_operation {
public:
    waiting(const descriptor_ref& of, time_point deadline) noexcept;
    bool ready() noexcept;
    result<signal_info> take(const waiter* w, wait_status how) const noexcept;

private:
    ::signalfd_siginfo info_;
};

}  // namespace weft
