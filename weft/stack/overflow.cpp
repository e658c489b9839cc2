#include "weft/stack/overflow.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "weft/base/detail/line.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/stack/detail/guard.hpp"
#include "weft/stack/detail/os_memory.hpp"

namespace weft {
namespace {

struct overflow_signal {
    int number;
    struct sigaction former;
};

// Written under install_lock before the handler is in place, read by the handler.
constinit detail::system_mutex install_lock;
overflow_signal signals[] = {{SIGSEGV, {}}, {SIGBUS, {}}};
constinit bool installed = false;
// Release by the thread that installs, acquire by the handler: the handler sees what the
// description needs.
// Orders: the acquire of is_overflow() pairs with the release of install_overflow_report().
constinit std::atomic<describe_overflow> describe{nullptr};

void report(const overflow_info& info) noexcept {
    const std::size_t kib = info.stack_bytes / 1024;
    detail::line l;
    l.text("weft: stack overflow in ")
        .agent(info.who)
        .text(" (")
        .number(kib)
        .text(" KiB stack at ");
    l.hex(reinterpret_cast<std::uintptr_t>(info.limit));
    std::size_t enough = 16;
    while (enough <= kib) enough *= 2;
    l.text("; try ").number(enough).text(" KiB or more)").newline().write(2);
}

bool is_overflow(const siginfo_t& fault, overflow_info& info) noexcept {
    const describe_overflow ask = describe.load(std::memory_order_acquire);
    // A code above zero is a fault; any other code is of a signal that was sent.
    if (fault.si_code <= 0 || ask == nullptr || !ask(fault.si_addr, info)) return false;
    const auto at = reinterpret_cast<std::uintptr_t>(fault.si_addr);
    const auto limit = reinterpret_cast<std::uintptr_t>(info.limit);
    return at < limit && limit - at <= info.guard_bytes;
}

void set_default(int number) noexcept {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(number, &standard, nullptr);
}

// The default action follows when the faulting instruction runs again; a signal that was sent has
// to be sent again.
void die_by(int number, bool sent) noexcept {
    set_default(number);
    if (sent) ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), number);
}

// Calls the former handler as the kernel would have: its mask is added to ours, and it is called
// only once if it was installed so.
void call_former(const struct sigaction& former, int number, siginfo_t* fault,
                 void* context) noexcept {
    if ((static_cast<unsigned>(former.sa_flags) & SA_RESETHAND) != 0) set_default(number);
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &former.sa_mask, &before);
    if ((former.sa_flags & SA_NODEFER) != 0) {
        sigset_t itself;
        sigemptyset(&itself);
        sigaddset(&itself, number);
        ::pthread_sigmask(SIG_UNBLOCK, &itself, nullptr);
    }
    if ((former.sa_flags & SA_SIGINFO) != 0)
        former.sa_sigaction(number, fault, context);
    else
        former.sa_handler(number);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void pass_on(const struct sigaction& former, int number, siginfo_t* fault, void* context) noexcept {
    const bool sent = fault->si_code <= 0;
    const bool plain = (former.sa_flags & SA_SIGINFO) == 0;
    if (plain && former.sa_handler == SIG_IGN && sent) return;
    // The kernel does not let a program ignore a real fault either.
    if (plain && (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN))
        die_by(number, sent);
    else
        call_former(former, number, fault, context);
}

void on_fault(int number, siginfo_t* fault, void* context) noexcept {
    const int saved_errno = errno;
    overflow_info info;
    if (is_overflow(*fault, info)) report(info);
    for (const overflow_signal& s : signals)
        if (s.number == number) pass_on(s.former, number, fault, context);
    errno = saved_errno;
}

// A thread's alternate signal stack, below it a guard.
class signal_stack {
public:
    void prepare() noexcept {
        if (prepared_) return;
        prepared_ = true;
        goes_with_the_process_ = ::gettid() == ::getpid();
        stack_t current;
        if (::sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
        // What the kernel saves of the processor's state, and room for the handlers of others.
        const long least = ::sysconf(_SC_MINSIGSTKSZ);
        const std::size_t bytes =
            detail::round_to_page(64 * 1024 + static_cast<std::size_t>(std::max(least, 0L)));
        const std::size_t guard = detail::page_bytes();
        std::byte* base = detail::os.map(guard + bytes);
        if (base == nullptr) return;
        detail::os.protect({base, guard});
        stack_t mine = {};
        mine.ss_sp = base + guard;
        mine.ss_size = bytes;
        mapping_ = {base, guard + bytes};
        ::sigaltstack(&mine, nullptr);  // if refused, it is released with the thread as well
    }

    // The first thread ends with its process, which may have forbidden these calls by then: a
    // seccomp sandbox kills the process for them (sshd's children).
    ~signal_stack() {
        if (mapping_.begin == nullptr || goes_with_the_process_) return;
        stack_t current;
        if (::sigaltstack(nullptr, &current) != 0) return;
        // The program may have set another alternate stack instead of this one, or the thread ends
        // on this one.
        if (current.ss_sp == mapping_.begin + detail::page_bytes()) {
            stack_t none = {};
            none.ss_flags = SS_DISABLE;
            if (::sigaltstack(&none, nullptr) != 0) return;
        }
        detail::os.unmap(mapping_);
        mapping_ = {};
    }

private:
    bool prepared_ = false;
    bool goes_with_the_process_ = false;
    detail::memory_range mapping_{nullptr, 0};
};

thread_local signal_stack this_thread_signal_stack;

}  // namespace

void install_overflow_report(describe_overflow who) noexcept {
    prepare_thread_for_overflow_report();
    const std::lock_guard held(install_lock);
    describe.store(who, std::memory_order_release);
    if (installed) return;
    installed = true;
    for (overflow_signal& s : signals) {
        // The former handler is stored before ours can run.
        ::sigaction(s.number, nullptr, &s.former);
        struct sigaction ours = {};
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (s.former.sa_flags & SA_RESTART);
        sigemptyset(&ours.sa_mask);
        ::sigaction(s.number, &ours, nullptr);
    }
}

// Out of line: it reads thread-local state.
WEFT_NOINLINE void prepare_thread_for_overflow_report() noexcept {
    this_thread_signal_stack.prepare();
}

}  // namespace weft
