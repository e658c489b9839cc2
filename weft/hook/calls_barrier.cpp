// Barriers of pthreads: fibers and threads arrive at one count and wait in one queue. The count of
// arrivals is in libc's own words, which are zero between two phases, as a call that destroys a
// barrier expects. A barrier that is shared between processes is libc's, and a fiber leaves the
// wait there to a thread of its own.
//
// Model: none, the words change under the lock of a line of the parking lot.

#include <cerrno>
#include <limits>

#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/parking_lot.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/shield.hpp"

namespace weft::hook {
namespace {

#if defined(__GLIBC__)

// As glibc has it since 2.25.
struct barrier_words {
    unsigned in;
    unsigned round;
    unsigned count;
    int shared;
    unsigned out;
};
static_assert(sizeof(barrier_words) <= sizeof(pthread_barrier_t));

int arrive_at_barrier(barrier_words& b) {
    for (;;) {
        // Two rounds that have a bit in common are 32 apart, and have no waiter in common.
        // Acquire: pairs with the release of the last arrival, so that a caller of the next round
        // sees what came before the end of this one.
        const unsigned round = __atomic_load_n(&b.round, __ATOMIC_ACQUIRE);
        const std::uint32_t bit = 1u << round % 32;
        enum { waits, is_last, is_late } arrival = waits;
        const unparked end =
            park(&b, {.what = "a barrier", .is_stopped = false, .bits = bit}, [&]() noexcept {
                if (b.round != round) {
                    arrival = is_late;
                } else if (++b.in == b.count) {
                    b.in = 0;
                    __atomic_store_n(&b.round, round + 1, __ATOMIC_RELEASE);  // see above
                    arrival = is_last;
                }
                return arrival == waits;
            });
        if (end != unparked::refused) return 0;
        if (arrival == is_late) continue;
        unpark(&b, std::numeric_limits<std::size_t>::max(), bit);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
}

#endif

}  // namespace

int everywhere::pthread_barrier_wait(pthread_barrier_t* b) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_barrier_wait", __builtin_return_address(0),
                              [=] { return real::pthread_barrier_wait(b); });

#if defined(__GLIBC__)
    auto& words = *reinterpret_cast<barrier_words*>(b);
    if (words.shared == 0) return arrive_at_barrier(words);
#endif
    if (hooked_fiber() == nullptr || !is_own_process()) return real::pthread_barrier_wait(b);
    const shield from_stops;
    return run_blocking([b] { return real::pthread_barrier_wait(b); }, pool_of_waits());
}

}  // namespace weft::hook
