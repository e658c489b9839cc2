#include "weft/sched/detached_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <thread>

#include "weft/base/platform.hpp"

namespace weft {

bool detail::begin_detached_thread(void (*f)(void*) noexcept, void* of) noexcept {
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    bool begun = true;
#if WEFT_EXCEPTIONS
    try {
#endif
        std::thread(f, of).detach();
#if WEFT_EXCEPTIONS
    } catch (...) {  // no thread, or no memory for it
        begun = false;
    }
#endif
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return begun;
}

}  // namespace weft
