// in_c: C++ functions where weft.h takes a function and a void*; and time points relative to now.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <type_traits>

#include "weft/posix/weft.h"

namespace weft::testing {

// Runs f() as the first fiber of this thread, and returns the result of weft_run.
template <class F>
void* run_in_c(F&& f) {
    using function = std::remove_reference_t<F>;
    void* result = nullptr;
    EXPECT_EQ(0, weft_run(
                     [](void* p) -> void* {
                         auto& g = *static_cast<function*>(p);
                         if constexpr (std::is_void_v<decltype(g())>) {
                             g();
                             return nullptr;
                         } else {
                             return g();
                         }
                     },
                     &f, &result));
    return result;
}

// A fiber that runs f(), which outlives it.
template <class F>
weft_t begin_in_c(F& f, const weft_attr_t* attr = nullptr) {
    weft_t t = WEFT_NULL;
    EXPECT_EQ(0, weft_create(
                     &t, attr,
                     [](void* p) -> void* {
                         auto& g = *static_cast<F*>(p);
                         if constexpr (std::is_void_v<decltype(g())>) {
                             g();
                             return nullptr;
                         } else {
                             return g();
                         }
                     },
                     &f));
    return t;
}

inline void* joined_in_c(weft_t t) {
    void* value = nullptr;
    EXPECT_EQ(0, weft_join(t, &value));
    return value;
}

inline timespec in_ms(int ms, clockid_t clock = CLOCK_REALTIME) {
    timespec t{};
    ::clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        ++t.tv_sec;
    }
    return t;
}

inline void* as_pointer(std::intptr_t n) { return reinterpret_cast<void*>(n); }

}  // namespace weft::testing
