#include "weft/sched/detail/detached_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <thread>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft {
namespace {

// Orders: relaxed, it is a count of threads, and publishes nothing that they have written.
constinit atomic<unsigned> in_their_functions{0};

}  // namespace

unsigned detail::detached_thread_count() noexcept {
    return in_their_functions.load(std::memory_order_relaxed);
}

bool detail::begin_detached_thread(void (*f)(void*) noexcept, void* of) noexcept {
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    bool begun = true;
#if WEFT_EXCEPTIONS
    try {
#endif
        std::thread([f, of]() noexcept {
            in_their_functions.fetch_add(1, std::memory_order_relaxed);
            f(of);
            in_their_functions.fetch_sub(1, std::memory_order_relaxed);
        }).detach();
#if WEFT_EXCEPTIONS
    } catch (...) {  // no thread, or no memory for it
        begun = false;
    }
#endif
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return begun;
}

}  // namespace weft
