// A coroutine that overflows its stack dies by the signal, with a line that names the
// coroutine.
#include "weft/coroutine/detail/overflow_report.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/stack/mapped_stack.hpp"

namespace weft {
namespace {

#if !WEFT_TEST_ASAN && !WEFT_TEST_TSAN  // which have handlers and reports of their own

[[gnu::noinline]] int recurse(int n) {
    volatile char frame[512];
    frame[0] = static_cast<char>(n);
    return (n == 1'000'000 ? 0 : recurse(n + 1)) + frame[0];
}

void overflow(const coroutine_options& options = {.name = "login", .stack_bytes = 64 * 1024}) {
    coroutine<int()> c([] { return recurse(0); }, options);
    c.resume();
}

constexpr const char* line =
    "weft: stack overflow in coroutine [0-9]+ \"login\" \\(64 KiB stack at 0x[0-9a-f]+; try 128";

TEST(overflow_report_death, names_the_coroutine_and_dies_by_the_signal) {
    EXPECT_EXIT(overflow(), ::testing::KilledBySignal(SIGSEGV), line);
}

// Whatever its colour offset and the rounding to whole pages have added: several stacks, each with
// another offset.
TEST(overflow_report_death, reports_the_requested_stack_size) {
    auto die = [](int others) {
        const coroutine_options of_that_size = {.stack_bytes = 64 * 1024};
        std::vector<coroutine<>> taken;
        for (int i = 0; i < others; ++i)
            taken.emplace_back([] { this_coroutine::yield(); }, of_that_size).resume();
        overflow();
    };
    for (int others = 0; others < 4; ++others)
        EXPECT_EXIT(die(others), ::testing::KilledBySignal(SIGSEGV), line);
    auto die_on_mapped = [] {
        mapped_stack stacks(64 * 1024);
        overflow({.name = "login", .stack = stacks});
    };
    EXPECT_EXIT(die_on_mapped(), ::testing::KilledBySignal(SIGSEGV), line);
    auto die_on_shared = [] {
        shared_stack_group group(1, 64 * 1024);
        overflow({.name = "login", .shared = &group});
    };
    EXPECT_EXIT(die_on_shared(), ::testing::KilledBySignal(SIGSEGV), line);
}

TEST(overflow_report_death, works_on_every_thread) {
    EXPECT_EXIT(std::thread([] { overflow(); }).join(), ::testing::KilledBySignal(SIGSEGV), line);
}

TEST(overflow_report_death, names_the_innermost_coroutine_of_a_chain) {
    auto die = [] {
        coroutine<> outer([] { overflow(); }, {.name = "outer"});
        outer.resume();
    };
    EXPECT_EXIT(die(), ::testing::KilledBySignal(SIGSEGV), line);
}

TEST(overflow_report_death, calls_the_previously_installed_handler) {
    auto die = [] {
        struct sigaction action = {};
        action.sa_flags = SA_ONSTACK;
        action.sa_handler = [](int) { ::_exit(7); };
        ::sigaction(SIGSEGV, &action, nullptr);
        overflow();
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process without a resume so far
    EXPECT_EXIT(die(), ::testing::ExitedWithCode(7), line);
    GTEST_FLAG_SET(death_test_style, "fast");
}

TEST(overflow_report_death, is_silent_for_other_faults) {
    auto die = [] {
        coroutine<> c([] { ::raise(SIGSEGV); }, {.name = "login"});
        c.resume();
    };
    EXPECT_EXIT(die(), ::testing::KilledBySignal(SIGSEGV), "^$");
}

#endif

TEST(overflow_report, can_be_prepared_repeatedly) {
    detail::prepare_overflow_report();
    detail::prepare_overflow_report();
    coroutine<int()> c([] { return 1; });
    EXPECT_EQ(c.resume(), 1);
}

}  // namespace
}  // namespace weft
