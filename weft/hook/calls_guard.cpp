// Guards of function-local statics: a fiber or thread that comes while another initialises one
// waits in line for its end. The bits are those of libstdc++, which would take a second fiber of a
// process that has one thread for a recursion, and end the program; and nothing of it is called, so
// that it need not be behind these symbols.
//
//      byte 0: it is initialised   byte 1: it is being so   byte 2: threads sleep by libstdc++'s
//      own
//
// An initialiser that needs its own static waits for ever, as in a program that has threads.
//
// Model: none, one word goes from party to party by exchange; its waiters are in the parking lot.

#include <linux/futex.h>
#include <sys/syscall.h>

#include <limits>

#include "weft/hook/calls.hpp"
#include "weft/hook/parking_lot.hpp"

namespace weft::hook {
namespace {

constexpr int guard_done = 1;
constexpr int guard_pending = 1 << 8;
constexpr int guard_waited_for = 1 << 16;

int* guard_word(__cxxabiv1::__guard* g) noexcept { return reinterpret_cast<int*>(g); }
int look_at_guard(const int* word) noexcept { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

void end_guard(__cxxabiv1::__guard* g, int as) noexcept {
    int* const word = guard_word(g);
    const int before = __atomic_exchange_n(word, as, __ATOMIC_SEQ_CST);
    if (may_have_parked(word)) unpark(word, std::numeric_limits<std::size_t>::max());
    // It sleeps without the flag that says private.
    if ((before & guard_waited_for) != 0)
        real::syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE,
                      std::numeric_limits<int>::max(), 0, 0, 0);
}

}  // namespace

int everywhere::__cxa_guard_acquire(__cxxabiv1::__guard* g) {
    int* const word = guard_word(g);
    for (;;) {
        int seen = look_at_guard(word);
        if ((seen & guard_done) != 0) return 0;
        if ((seen & guard_pending) != 0) {
            // A party that is woken looks again.
            static_cast<void>(park(word,
                                   {.what = "the initialisation of a static", .is_stopped = false},
                                   [=] { return (look_at_guard(word) & guard_pending) != 0; }));
        } else if (__atomic_compare_exchange_n(word, &seen, guard_pending, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST)) {
            return 1;
        }
    }
}

void everywhere::__cxa_guard_release(__cxxabiv1::__guard* g) { end_guard(g, guard_done); }
void everywhere::__cxa_guard_abort(__cxxabiv1::__guard* g) { end_guard(g, 0); }

}  // namespace weft::hook
