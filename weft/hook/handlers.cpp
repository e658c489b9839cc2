#include "weft/hook/detail/handlers.hpp"

#include <cerrno>

#include "weft/base/detail/atomic.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/interruption.hpp"

namespace weft::hook {
namespace {

using action = struct ::sigaction;
using plain_handler = void (*)(int);
using info_handler = void (*)(int, siginfo_t*, void*);

constexpr int most_signals = 65;

struct handler_words {
    // Orders: what acquires pairs with the releases of set_handler(), which may be another
    // thread's.
    atomic<plain_handler> plain{nullptr};
    atomic<info_handler> info{nullptr};
};
constinit handler_words handlers[most_signals];

// The flags as set now: siginterrupt() changes them behind all hooks.
bool restarts(int signal) noexcept {
    action now{};
    real::sigaction(signal, nullptr, &now);
    return (now.sa_flags & SA_RESTART) != 0;
}

void run_plain(int signal, siginfo_t* why, void*) noexcept(false) {
    const bool goes_on = restarts(signal);
    {
        const running_handler here;
        handlers[signal].plain.load(std::memory_order_acquire)(signal);
    }
    note_handler(signal, goes_on, why);
}
void run_with_info(int signal, siginfo_t* why, void* context) noexcept(false) {
    const bool goes_on = restarts(signal);
    {
        const running_handler here;
        handlers[signal].info.load(std::memory_order_acquire)(signal, why, context);
    }
    note_handler(signal, goes_on, why);
}

bool is_wrapped(int signal) noexcept {
    switch (signal) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
        case SIGSYS:
            return false;
        default:
            return signal > 0 && signal < most_signals;
    }
}

bool is_own(const action& a) noexcept {
    return (a.sa_flags & SA_SIGINFO) != 0 &&
           (a.sa_sigaction == run_plain || a.sa_sigaction == run_with_info);
}

// Shows the handler that the program has set, in place of weft's own function.
void show_own(action& a, plain_handler plain, info_handler info) noexcept {
    if (!is_own(a)) return;
    if (a.sa_sigaction == run_with_info) {
        a.sa_sigaction = info;
    } else {
        a.sa_flags &= ~SA_SIGINFO;
        a.sa_handler = plain;
    }
}

}  // namespace

int set_handler(int signal, const action* wanted, action* before) noexcept {
    if (!is_wrapped(signal)) return real::sigaction(signal, wanted, before);
    handler_words& h = handlers[signal];
    const plain_handler plain_before = h.plain.load(std::memory_order_acquire);
    const info_handler info_before = h.info.load(std::memory_order_acquire);
    action given;
    // In a child that shares this memory, and in a child of fork(), the table is left alone.
    const bool is_handler = wanted != nullptr && wanted->sa_handler != SIG_DFL &&
                            wanted->sa_handler != SIG_IGN && !is_own(*wanted) &&
                            process_state::has(process_state::alive) && is_own_process();
    if (is_handler) {
        given = *wanted;
        if ((given.sa_flags & SA_SIGINFO) != 0) {
            h.info.store(given.sa_sigaction, std::memory_order_release);
            given.sa_sigaction = run_with_info;
        } else {
            h.plain.store(given.sa_handler, std::memory_order_release);
            given.sa_flags |= SA_SIGINFO;
            given.sa_sigaction = run_plain;
        }
        wanted = &given;
        expect_handlers();
    }
    const int r = real::sigaction(signal, wanted, before);
    if (r == 0 && before != nullptr) show_own(*before, plain_before, info_before);
    if (r != 0 && is_handler) {
        h.plain.store(plain_before, std::memory_order_release);
        h.info.store(info_before, std::memory_order_release);
    }
    return r;
}

int everywhere::sigaction(int signal, const action* wanted, action* before) {
    return set_handler(signal, wanted, before);
}

namespace {

// libc's own functions do more: signal() remembers what siginterrupt() has set, sigset() may change
// the mask, and all have flags of their own. libc therefore sets the handler, and the result is
// then set again with weft's function in front.
sighandler_t set_by(sighandler_t (*by_libc)(int, sighandler_t), int signal, sighandler_t handler) {
    action before;
    const bool known = is_wrapped(signal) && set_handler(signal, nullptr, &before) == 0;
    const sighandler_t r = by_libc(signal, handler);
    if (r == SIG_ERR || !known) return r;
    action now;
    const bool sets = handler != SIG_DFL && handler != SIG_IGN && handler != SIG_HOLD;
    if (sets && real::sigaction(signal, nullptr, &now) == 0) set_handler(signal, &now, nullptr);
    return r == SIG_HOLD ? r : before.sa_handler;
}

}  // namespace

sighandler_t everywhere::signal(int signal, sighandler_t handler) {
    return set_by(real::signal, signal, handler);
}

sighandler_t everywhere::sigset(int signal, sighandler_t handler) {
    return set_by(real::sigset, signal, handler);
}

sighandler_t everywhere::sysv_signal(int signal, sighandler_t handler) {
    return set_by(real::sysv_signal, signal, handler);
}

// The variants of signal(): for programs that request only System V or X/Open, and its other names.
sighandler_t everywhere::__sysv_signal(int signal, sighandler_t handler) {
    return set_by(real::__sysv_signal, signal, handler);
}
sighandler_t everywhere::bsd_signal(int signal, sighandler_t handler) {
    return set_by(real::bsd_signal, signal, handler);
}
sighandler_t everywhere::ssignal(int signal, sighandler_t handler) {
    return set_by(real::ssignal, signal, handler);
}

}  // namespace weft::hook
