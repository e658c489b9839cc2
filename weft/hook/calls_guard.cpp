// Guards of function-local statics: a fiber or thread that comes while another initialises the
// static is queued until the initialisation ends. The bits are those of libstdc++, which in a
// process with one thread would take a second fiber for a recursion, and end the program. No
// function of libstdc++ is called, so it need not be behind these symbols.
//
//      byte 0        the static is initialised
//      byte 1        the static is being initialised
//      byte 2        threads sleep by libstdc++'s own means
//      bytes 4 to 7  the owner; compilers leave these bytes alone
//
// An initialiser that needs its own static would wait for itself: it gets an exception, as
// libstdc++ throws with one thread. Compilers expect no exception of this function, so as a
// rule the exception ends the program, which reports the reason.
//
// Limits: fibers whose ids differ by a multiple of 2^31 are taken for one another.
//
// Model: none, one word goes from agent to agent by exchange; its waiters are in the parking lot.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/parking_lot.hpp"

namespace weft::hook {
namespace {

constexpr int guard_done = 1;
constexpr int guard_pending = 1 << 8;
constexpr int guard_waited_for = 1 << 16;

int* guard_word(init_guard* g) noexcept { return reinterpret_cast<int*>(g); }
int look_at_guard(const int* word) noexcept { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

// The owner's word: of the agent that initialises it; null where the guard has no room for one
// (ARM, of 32 bits).
std::uint32_t* guard_owner(init_guard* g) noexcept {
    if constexpr (sizeof *g < 8)
        return nullptr;
    else
        return reinterpret_cast<std::uint32_t*>(g) + 1;
}
// Relaxed: only the agent with that id compares the word with its own id. Never 0.
void set_guard_owner(init_guard* g, std::uint32_t to) noexcept {
    if (std::uint32_t* const owner = guard_owner(g)) __atomic_store_n(owner, to, __ATOMIC_RELAXED);
}
std::uint32_t guard_number_of(const fiber_core& f) noexcept {
    return static_cast<std::uint32_t>(f.id()) | std::uint32_t{1} << 31;
}
std::uint32_t number_of_caller() noexcept {
    if (const fiber_core* const f = fiber_here()) return guard_number_of(*f);
    return static_cast<std::uint32_t>(::gettid());
}
bool is_initialised_by(init_guard* g, std::uint32_t me) noexcept {
    const std::uint32_t* const owner = guard_owner(g);
    // Relaxed: as in set_guard_owner().
    return owner != nullptr && __atomic_load_n(owner, __ATOMIC_RELAXED) == me;
}

#if WEFT_EXCEPTIONS
// libstdc++'s exception has a name that its shared object does not export.
struct recursive_init_error final : std::exception {
    const char* what() const noexcept override {
        return "the initialiser of a static needs the static itself";
    }
};
#endif

[[noreturn]] WEFT_COLD void refuse_recursion() {
#if WEFT_EXCEPTIONS
    throw recursive_init_error();
#else
    weft::detail::line{}
        .text("weft: hook: the initialiser of a static needs the static itself\n")
        .write(2);
    std::abort();
#endif
}

void end_guard(init_guard* g, int as) noexcept {
    int* const word = guard_word(g);
    set_guard_owner(g, 0);
    const int before = __atomic_exchange_n(word, as, __ATOMIC_SEQ_CST);
    if (may_have_parked(word)) unpark(word, std::numeric_limits<std::size_t>::max());
    // The thread sleeps without the flag for private.
    if ((before & guard_waited_for) != 0)
        real::syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE,
                      std::numeric_limits<int>::max(), 0, 0, 0);
}

}  // namespace

int everywhere::__cxa_guard_acquire(init_guard* g) {
    int* const word = guard_word(g);
    std::uint32_t me = 0;
    for (;;) {
        int seen = look_at_guard(word);
        if ((seen & guard_done) != 0) return 0;
        if (me == 0) me = number_of_caller();
        if ((seen & guard_pending) != 0) {
            if (is_initialised_by(g, me)) refuse_recursion();
            // A waiter that is woken checks again.
            const parking how = {
                .what = "the initialisation of a static",
                .is_stopped = false,
                .is_owned = true,
                .is_owner = [](const void* word_of_guard, const fiber_core& f) noexcept {
                    auto* const one = const_cast<void*>(word_of_guard);
                    return is_initialised_by(static_cast<init_guard*>(one), guard_number_of(f));
                }};
            static_cast<void>(
                park(word, how, [=] { return (look_at_guard(word) & guard_pending) != 0; }));
        } else if (__atomic_compare_exchange_n(word, &seen, guard_pending, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST)) {
            set_guard_owner(g, me);
            return 1;
        }
    }
}

void everywhere::__cxa_guard_release(init_guard* g) { end_guard(g, guard_done); }
void everywhere::__cxa_guard_abort(init_guard* g) { end_guard(g, 0); }

}  // namespace weft::hook
