// cpu_of_thread: the time for which the calling thread has had a processor.
#pragma once

#include <time.h>

#include <chrono>

namespace weft::testing {

inline std::chrono::nanoseconds cpu_of_thread() noexcept {
    ::timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace weft::testing
