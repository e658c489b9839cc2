// Runs something on a thread that is to be cancelled: it is at its first cancellation point.
#pragma once

#include <pthread.h>

namespace weft::testing {

// Whether that, and nothing else, ended the thread.
template <class F>
bool is_cancelled_in(F f) {
    ::pthread_t t;
    const int refused = ::pthread_create(
        &t, nullptr,
        [](void* p) -> void* {
            ::pthread_cancel(::pthread_self());
            (*static_cast<F*>(p))();
            return nullptr;
        },
        &f);
    void* end = nullptr;
    return refused == 0 && ::pthread_join(t, &end) == 0 && end == PTHREAD_CANCELED;
}

}  // namespace weft::testing
