// R-12: who runs out of stack dies by the signal, with a line that says who he was.
#include "weft/coroutine/overflow_report.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

#if !WEFT_TEST_ASAN && !WEFT_TEST_TSAN  // which have handlers and reports of their own

[[gnu::noinline]] int recurse(int n) {
    volatile char frame[512];
    frame[0] = static_cast<char>(n);
    return (n == 1'000'000 ? 0 : recurse(n + 1)) + frame[0];
}

void overflow() {
    coroutine<int()> c([] { return recurse(0); }, {.name = "login", .stack_bytes = 64 * 1024});
    c.resume();
}

// The size is that of the whole stack, up to a page more than was asked for.
constexpr const char* line =
    "weft: stack overflow in coroutine [0-9]+ \"login\" \\(6[48] KiB stack at 0x[0-9a-f]+";

TEST(overflow_report_death, names_the_coroutine_and_dies_by_the_signal) {
    EXPECT_EXIT(overflow(), testing::KilledBySignal(SIGSEGV), line);
}

TEST(overflow_report_death, is_made_on_every_thread) {
    EXPECT_EXIT(std::thread(overflow).join(), testing::KilledBySignal(SIGSEGV), line);
}

TEST(overflow_report_death, names_the_innermost_of_a_chain) {
    auto die = [] {
        coroutine<> outer([] { overflow(); }, {.name = "outer"});
        outer.resume();
    };
    EXPECT_EXIT(die(), testing::KilledBySignal(SIGSEGV), line);
}

TEST(overflow_report_death, calls_the_handler_that_was_there_before) {
    auto die = [] {
        struct sigaction action = {};
        action.sa_flags = SA_ONSTACK;
        action.sa_handler = [](int) { ::_exit(7); };
        ::sigaction(SIGSEGV, &action, nullptr);
        overflow();
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which nobody resumed yet
    EXPECT_EXIT(die(), testing::ExitedWithCode(7), line);
    GTEST_FLAG_SET(death_test_style, "fast");
}

TEST(overflow_report_death, says_nothing_of_other_faults) {
    auto die = [] {
        coroutine<> c([] { ::raise(SIGSEGV); }, {.name = "login"});
        c.resume();
    };
    EXPECT_EXIT(die(), testing::KilledBySignal(SIGSEGV), "^$");
}

#endif

TEST(overflow_report, may_be_prepared_any_number_of_times) {
    detail::prepare_overflow_report();
    detail::prepare_overflow_report();
    coroutine<int()> c([] { return 1; });
    EXPECT_EQ(c.resume(), 1);
}

}  // namespace
}  // namespace weft
