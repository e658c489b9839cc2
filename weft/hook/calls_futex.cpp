// Futexes, by `syscall`: what std::atomic::wait, std::latch, std::future and the guards of
// function-local statics wait with. All other system calls pass.
//
//      a fiber's WAIT     parks at the address
//      a thread's WAIT    is the original: it sleeps in the kernel
//      any WAKE           wakes the fibers that are parked there, and then, if fewer were than may
//                         be woken, sleepers of the kernel
//
// - A fiber that another process could wake (no FUTEX_PRIVATE_FLAG) checks again after a while, by
//   a return without a reason, which the system call permits.
// - A fiber cannot be requeued to another word: where a sleeper would be, it is woken without a
//   reason.
// - libc declares `syscall` as a function that throws nothing: a kill there is refused where the
//   calling function has something to destroy.
// - A stop ends no wait: such waiters check a word, and would wait again and again.
//
// Model: none, the word is the program's, and its waiters are in the parking lot.

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>

#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/readable.hpp"
#include "weft/hook/detail/shared_child.hpp"
#include "weft/hook/detail/timed_park.hpp"

namespace weft::hook {
namespace {

// The arguments of the system call.
struct futex_call {
    long word;
    long op;
    long value;
    long timeout;  // or the second value
    long other_word;
    long third_value;

    const void* address() const noexcept { return reinterpret_cast<const void*>(word); }
    int command() const noexcept {
        return static_cast<int>(op) & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    }
    bool has(int flag) const noexcept { return (static_cast<int>(op) & flag) != 0; }
    long pass() const {
        return real::syscall(SYS_futex, word, op, value, timeout, other_word, third_value);
    }
};

// The count of waiters that a wake names: the system wakes one before it checks the count.
std::size_t most_of(long count) noexcept {
    return static_cast<std::size_t>(std::max(static_cast<int>(count), 1));
}

// After the caller's store to the word, in whatever order.
std::size_t wake_fibers(const void* word, std::size_t most, std::uint32_t bits = ~0u) noexcept {
    weft::detail::full_fence();
    return may_have_parked(word) ? unpark(word, most, bits) : 0;
}

long wake_word(const futex_call& c, std::uint32_t bits) {
    const std::size_t most = most_of(c.value);
    if (bits == 0 || c.address() == nullptr) return c.pass();
    const std::size_t n = wake_fibers(c.address(), most, bits);
    if (n == most) return static_cast<long>(n);
    futex_call rest = c;
    rest.value = static_cast<long>(most - n);
    const int before = errno;
    const long r = rest.pass();
    if (r >= 0) return r + static_cast<long>(n);
    if (n != 0) errno = before;
    return n != 0 ? static_cast<long>(n) : r;
}

// A fiber that is killed after it was woken.
void pass_wake_on(const void* word, bool) noexcept {
    wake_word({reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0}, ~0u);
}

// Both words are woken: otherwise the waiters of the first would wait on at the second.
long wake_or_move(const futex_call& c) {
    const long r = c.pass();
    if (r < 0) return r;
    const auto many = [](long n) noexcept {
        return static_cast<std::size_t>(std::max(static_cast<int>(n), 0));
    };
    return r + static_cast<long>(wake_fibers(c.address(), most_of(c.value) + many(c.timeout)));
}
long wake_and_change(const futex_call& c) {
    const long r = c.pass();
    if (r < 0) return r;
    const std::size_t n =
        wake_fibers(c.address(), most_of(c.value)) +
        wake_fibers(reinterpret_cast<const void*>(c.other_word), most_of(c.timeout));
    return r + static_cast<long>(n);
}

timespec moment_after(const timespec& wanted) noexcept {
    timespec there{};
    ::clock_gettime(CLOCK_MONOTONIC, &there);
    there.tv_nsec += wanted.tv_nsec;
    const long carry = there.tv_nsec / 1'000'000'000;
    there.tv_nsec %= 1'000'000'000;
    if (__builtin_add_overflow(there.tv_sec, wanted.tv_sec, &there.tv_sec) ||
        __builtin_add_overflow(there.tv_sec, carry, &there.tv_sec))
        there.tv_sec = std::numeric_limits<time_t>::max();
    return there;
}

long wait_for_word(const futex_call& c, std::uint32_t bits) {
    const auto* const timeout = reinterpret_cast<const timespec*>(c.timeout);
    const bool is_relative = c.command() == FUTEX_WAIT;
    const bool is_refused =
        bits == 0 || c.word % 4 != 0 || (timeout != nullptr && !is_readable(timeout)) ||
        (is_relative && c.has(FUTEX_CLOCK_REALTIME)) ||
        (timeout != nullptr && (timeout->tv_sec < 0 || is_no_moment_of_waits(*timeout)));
    if (is_refused || !is_own_process()) return c.pass();
    if (const int why = look_at_word(c.word, static_cast<int>(c.value)); why != 0)
        return errno = why, -1;

    timespec at{};
    clock_moment m{c.has(FUTEX_CLOCK_REALTIME) ? CLOCK_REALTIME : CLOCK_MONOTONIC, nullptr};
    if (timeout != nullptr) {
        at = is_relative ? moment_after(*timeout) : *timeout;
        m.at = &at;
    }
    parking how{.what = "a futex", .is_stopped = false, .bits = bits, .abandoned = pass_wake_on};
    const auto still = [&c] {
        return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(c.word), __ATOMIC_SEQ_CST) ==
               static_cast<std::uint32_t>(c.value);
    };
    unparked end;
    if (c.has(FUTEX_PRIVATE_FLAG)) {
        end = park_until(c.address(), how, m, still);
    } else {
        constexpr duration a_while = std::chrono::milliseconds(10);
        const duration left =
            m.at == nullptr ? a_while : std::clamp(left_until_moment(m), duration::zero(), a_while);
        how.deadline = after(now(), left);
        end = park(c.address(), how, still);
        if (end == unparked::timed_out &&
            (m.at == nullptr || left_until_moment(m) > duration::zero()))
            end = unparked::woken;
    }
    if (end == unparked::refused) return errno = EAGAIN, -1;
    if (end == unparked::timed_out) return errno = ETIMEDOUT, -1;
    return 0;
}

long call_futex(const futex_call& c) {
    const auto bits = static_cast<std::uint32_t>(c.third_value);
    switch (c.command()) {
        case FUTEX_WAIT:
            return hooked_fiber() != nullptr ? wait_for_word(c, ~0u) : c.pass();
        case FUTEX_WAIT_BITSET:
            return hooked_fiber() != nullptr ? wait_for_word(c, bits) : c.pass();
        case FUTEX_WAKE:
            return wake_word(c, ~0u);
        case FUTEX_WAKE_BITSET:
            return wake_word(c, bits);
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
            return wake_or_move(c);
        case FUTEX_WAKE_OP:
            return wake_and_change(c);
        default:
            return c.pass();
    }
}

// Called early, because syscall() is used where no symbol can be looked up: between vfork() and
// exec(), in signal handlers.
__attribute__((constructor(101))) void find_syscall_early() {
    real::syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

bool makes_a_child(long number) noexcept {
#if defined(SYS_vfork)
    if (number == SYS_fork || number == SYS_vfork) return true;
#endif
    return number == SYS_clone || number == SYS_clone3;
}

}  // namespace

// Six arguments are read whether they were passed or not, as libc does; no code uses those that
// were not passed.
long everywhere::syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_futex) return call_futex({a, b, c, d, e, f});
    if (makes_a_child(number)) [[unlikely]]
        expect_shared_child();
    return real::syscall(number, a, b, c, d, e, f);
}

}  // namespace weft::hook
