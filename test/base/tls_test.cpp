#include "weft/base/detail/tls.hpp"

#include <gtest/gtest.h>

#include <thread>

#if WEFT_LINUX
#include <ucontext.h>
#endif

struct tls_test_state {
    int value = 0;
};

WEFT_DECLARE_THREAD_LOCAL(tls_test_state, weft_tls_test_state, this_tls_test_state);
WEFT_DEFINE_THREAD_LOCAL(tls_test_state, weft_tls_test_state);

namespace {

using weft::detail::this_tls_test_state;

TEST(tls, gives_each_thread_a_zero_initialised_variable) {
    this_tls_test_state().value = 5;
    tls_test_state* other = nullptr;
    std::thread([&other] {
        EXPECT_EQ(this_tls_test_state().value, 0);
        this_tls_test_state().value = 6;
        other = &this_tls_test_state();
    }).join();
    EXPECT_EQ(this_tls_test_state().value, 5);
    EXPECT_NE(other, &this_tls_test_state());
}

TEST(tls, accessor_and_language_refer_to_the_same_variable) {
    EXPECT_EQ(&this_tls_test_state(), &weft_tls_test_state);
    EXPECT_EQ(&this_tls_test_state(), weft_tls_test_state_address());
}

#ifdef __GLIBC__  // only glibc has such means here; see test/coroutine/migration_test.cpp
// A stackful coroutine by the means of the system: resumed by two threads in turn, it must see the
// variable of the thread it runs on, though one function body holds all of its accesses.
ucontext_t resumer, body_context;
tls_test_state* seen[4];

void body() {
    for (tls_test_state*& at : seen) {
        at = &this_tls_test_state();
        at->value += 1;
        swapcontext(&body_context, &resumer);
    }
}

TEST(tls, function_that_migrates_sees_each_threads_variable) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizers are not told of this switch";
    alignas(16) static char stack[64 * 1024];
    getcontext(&body_context);
    body_context.uc_stack.ss_sp = stack;
    body_context.uc_stack.ss_size = sizeof stack;
    makecontext(&body_context, body, 0);
    const auto step = [] { swapcontext(&resumer, &body_context); };
    for (int n = 0; n < 4; n += 2) {
        step();
        EXPECT_EQ(seen[n], &this_tls_test_state());
        std::thread([&, n] {
            step();
            EXPECT_EQ(seen[n + 1], &this_tls_test_state());
        }).join();
        EXPECT_NE(seen[n], seen[n + 1]);
    }
}
#endif

}  // namespace
