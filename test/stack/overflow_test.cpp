#include "weft/stack/overflow.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "test/stack/memory_probe.hpp"
#include "test/support/touch.hpp"
#include "weft/base/platform.hpp"
#include "weft/stack/mapped_stack.hpp"

namespace weft {
namespace {

// The agent that "runs": a stack that the tests overflow.
stack running;
const char* running_name = "login";

bool describe(const void*, overflow_info& info) noexcept {
    if (!running) return false;
    info.who = {"coroutine", 17, running_name};
    info.limit = running.limit;
    info.stack_bytes = 64 * 1024;
    return true;
}

using testing::touch;

[[gnu::noinline]] int go_deeper(int n) {
    volatile char frame[512];
    frame[0] = static_cast<char>(n);
    const int below = n == 1'000'000 ? 0 : go_deeper(n + 1);
    return below + frame[0];
}

[[maybe_unused]] void dive() { std::exit(go_deeper(0)); }

#ifdef __GLIBC__  // musl has no such switch
// Overflows for good: by recursion on the stack itself.
void overflow_by_recursion() {
    ucontext_t here;
    ucontext_t there;
    getcontext(&there);
    there.uc_stack.ss_sp = running.limit;
    there.uc_stack.ss_size = running.bytes();
    there.uc_link = nullptr;
    makecontext(&there, dive, 0);
    swapcontext(&here, &there);
}
#endif

void set_handler(int number, void (*handler)(int, siginfo_t*, void*), int flags = 0) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    ::sigaction(number, &action, nullptr);
}

void say(const char* text) {
    if (::write(2, text, std::strlen(text)) < 0) std::abort();
}

// Every case runs in a child, where the handler is installed for the first time.
class overflow_death : public ::testing::Test {
protected:
    void SetUp() override {
        running = stacks.acquire();
        ASSERT_TRUE(running);
    }
    void TearDown() override {
        stacks.release(running);
        running = {};
    }
    mapped_stack stacks{64 * 1024};
};

const char* const line =
    "weft: stack overflow in coroutine 17 \"login\" \\(64 KiB stack at 0x[0-9a-f]+; "
    "try 128 KiB or more\\)";

TEST_F(overflow_death, names_the_coroutine_and_its_stack_and_dies_by_the_signal) {
    const auto child = [] {
        install_overflow_report(describe);
        touch(running.limit - 1);
    };
    if (WEFT_ASAN || WEFT_TSAN) {  // there the sanitizer's handler is the former one
        EXPECT_DEATH(child(), line);
    } else {
        EXPECT_EXIT(child(), ::testing::KilledBySignal(SIGSEGV), line);
    }
}

#ifdef __GLIBC__
TEST_F(overflow_death, is_reported_from_a_full_stack) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer does not know of the switch";
    EXPECT_EXIT(
        {
            install_overflow_report(describe);
            overflow_by_recursion();
        },
        ::testing::KilledBySignal(SIGSEGV), line);
}

TEST_F(overflow_death, is_reported_on_every_prepared_thread) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer does not know of the switch";
    EXPECT_EXIT(
        {
            install_overflow_report(describe);
            std::thread([] {
                prepare_thread_for_overflow_report();
                prepare_thread_for_overflow_report();
                overflow_by_recursion();
            }).join();
        },
        ::testing::KilledBySignal(SIGSEGV), line);
}
#endif

TEST_F(overflow_death, of_an_unnamed_coroutine_is_reported_by_its_id) {
    running_name = nullptr;
    EXPECT_DEATH(
        {
            install_overflow_report(describe);
            touch(running.limit - 4096);
        },
        "overflow in coroutine 17 \\(64 KiB");
    running_name = "login";
}

// Prints the child's output, so that the test can search it for text that must not be there.
TEST_F(overflow_death, is_not_reported_for_a_fault_elsewhere) {
    const auto child = [](std::byte* where) {
        set_handler(SIGSEGV, [](int, siginfo_t*, void*) {
            say("only this\n");
            std::_Exit(3);
        });
        install_overflow_report(describe);
        say("[");
        touch(where);
    };
    EXPECT_EXIT(child(reinterpret_cast<std::byte*>(8)), ::testing::ExitedWithCode(3),
                "^\\[only this");
    std::byte* const limit = running.limit;
    running.limit = reinterpret_cast<std::byte*>(8 + 4096 + 1);
    EXPECT_EXIT(child(reinterpret_cast<std::byte*>(8)), ::testing::ExitedWithCode(3),
                "^\\[only this")
        << "the first byte below the guard";
    running.limit = limit;
    const stack nobody = std::exchange(running, {});
    EXPECT_EXIT(child(nobody.limit - 1), ::testing::ExitedWithCode(3), "^\\[only this");
    running = nobody;
}

// The address in the report of a fault: on s390x that of its page.
void* as_reported(std::byte* p) {
#if defined(__s390x__)
    return p - reinterpret_cast<std::uintptr_t>(p) % detail::page_bytes();
#else
    return p;
#endif
}

TEST_F(overflow_death, is_passed_to_the_programs_siginfo_handler) {
    EXPECT_EXIT(
        {
            set_handler(SIGSEGV, [](int number, siginfo_t* info, void* context) {
                if (number == SIGSEGV && info->si_addr == as_reported(running.limit - 1) &&
                    context != nullptr)
                    say("mine too\n");
                std::_Exit(4);
            });
            install_overflow_report(describe);
            touch(running.limit - 1);
        },
        ::testing::ExitedWithCode(4), "weft: stack overflow.*\nmine too");
}

TEST_F(overflow_death, is_passed_to_a_plain_handler) {
    EXPECT_EXIT(
        {
            ::signal(SIGSEGV, [](int number) {
                say("plain\n");
                std::_Exit(number);
            });
            install_overflow_report(describe);
            touch(running.limit - 1);
        },
        ::testing::ExitedWithCode(SIGSEGV), "weft: stack overflow.*\nplain");
}

TEST_F(overflow_death, calls_a_previous_handler_with_its_requested_mask) {
    EXPECT_EXIT(
        {
            struct sigaction action = {};
            action.sa_flags = SA_NODEFER;
            sigaddset(&action.sa_mask, SIGUSR1);
            action.sa_handler = [](int) {
                sigset_t now;
                ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
                std::_Exit(sigismember(&now, SIGUSR1) * 2 + sigismember(&now, SIGSEGV));
            };
            ::sigaction(SIGSEGV, &action, nullptr);
            install_overflow_report(describe);
            touch(running.limit - 1);
        },
        ::testing::ExitedWithCode(2), line);
}

TEST_F(overflow_death, calls_a_previous_resethand_handler_once) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer keeps its own idea of the default";
    EXPECT_EXIT(
        {
            set_handler(
                SIGSEGV, [](int, siginfo_t*, void*) { say("once\n"); },
                static_cast<int>(SA_RESETHAND));
            install_overflow_report(describe);
            touch(running.limit - 1);
        },
        ::testing::KilledBySignal(SIGSEGV), "weft: stack overflow.*\nonce\n$");
}

TEST_F(overflow_death, is_not_reported_for_a_sent_signal) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer's handler is the former one";
    EXPECT_EXIT(
        {
            install_overflow_report(describe);
            ::raise(SIGSEGV);
            std::_Exit(0);
        },
        ::testing::KilledBySignal(SIGSEGV), "^$");
    EXPECT_EXIT(
        {
            ::signal(SIGSEGV, SIG_IGN);
            install_overflow_report(describe);
            ::raise(SIGSEGV);
            std::_Exit(0);
        },
        ::testing::ExitedWithCode(0), "^$");
}

sigjmp_buf back;

TEST_F(overflow_death, is_reported_again_after_a_handler_jumped_out) {
    if (WEFT_TSAN) GTEST_SKIP() << "ThreadSanitizer does not let go of a handler that was left so";
    EXPECT_EXIT(
        {
            set_handler(SIGSEGV, [](int, siginfo_t*, void*) { siglongjmp(back, 1); });
            install_overflow_report(describe);
            volatile int rounds = 0;
            if (sigsetjmp(back, 1) != 0) rounds = rounds + 1;
            if (rounds == 3) std::_Exit(5);
            touch(running.limit - 1);
        },
        ::testing::ExitedWithCode(5), "(weft: stack overflow[^\n]*\n){3}$");
}

TEST_F(overflow_death, second_install_replaces_only_the_describe_function) {
    EXPECT_EXIT(
        {
            set_handler(SIGSEGV, [](int, siginfo_t*, void*) { std::_Exit(6); });
            install_overflow_report(describe);
            install_overflow_report([](const void*, overflow_info& info) noexcept {
                info.who = {"fiber", 3, nullptr};
                info.limit = running.limit;
                info.stack_bytes = 16 * 1024;
                return true;
            });
            touch(running.limit - 1);
        },
        ::testing::ExitedWithCode(6),
        "^weft: stack overflow in fiber 3 \\(16 KiB.*32 KiB or more\\)\n$");
}

// ThreadSanitizer checks: another thread faults, which nothing else orders behind the installing.
TEST_F(overflow_death, sees_data_written_before_the_install) {
    static stack there;
    EXPECT_EXIT(
        {
            set_handler(SIGSEGV, [](int, siginfo_t*, void*) { std::_Exit(7); });
            std::atomic<bool> installed{false};
            std::thread other([&] {
                while (!installed.load(std::memory_order_relaxed)) std::this_thread::yield();
                touch(running.limit - 1);
            });
            there = running;
            install_overflow_report([](const void*, overflow_info& info) noexcept {
                info.who = {"coroutine", 17, "login"};
                info.limit = there.limit;
                info.stack_bytes = 64 * 1024;
                return true;
            });
            installed.store(true, std::memory_order_relaxed);
            other.join();
        },
        ::testing::ExitedWithCode(7), line);
}

TEST(overflow, gives_a_thread_an_alternate_stack) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer's threads have one already";
    std::thread([] {
        stack_t now = {};
        ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
        ASSERT_NE(now.ss_flags & SS_DISABLE, 0);
        prepare_thread_for_overflow_report();
        ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
        EXPECT_EQ(now.ss_flags & SS_DISABLE, 0);
        const auto saved = static_cast<std::size_t>(::sysconf(_SC_MINSIGSTKSZ));
        EXPECT_GE(now.ss_size, 64 * 1024 + saved) << "room for handlers above what a signal saves";
    }).join();
}

TEST(overflow, releases_the_alternate_stack_with_its_thread) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer's threads have one already";
    test::failing_memory memory;
    std::size_t during = 0;
    std::thread([&] {
        prepare_thread_for_overflow_report();
        during = memory.mapping_count();
    }).join();
    EXPECT_EQ(during, 1u);
    EXPECT_TRUE(memory.nothing_leaked());
}

TEST(overflow, keeps_a_threads_own_alternate_stack) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer's threads have one already";
    std::thread([] {
        static std::byte memory[64 * 1024];
        stack_t mine = {};
        mine.ss_sp = memory;
        mine.ss_size = sizeof memory;
        ASSERT_EQ(::sigaltstack(&mine, nullptr), 0);
        prepare_thread_for_overflow_report();
        stack_t now = {};
        ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
        EXPECT_EQ(now.ss_sp, memory);
        mine.ss_flags = SS_DISABLE;
        ::sigaltstack(&mine, nullptr);
    }).join();
}

// From now on the process is killed for it.
void forbid(long call) {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {4, rules};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::exit(0);
}

// As sshd's children do, which then end by exit().
TEST(overflow, lets_a_process_exit_when_sigaltstack_is_forbidden) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "the sanitizer changes it at the end";
    EXPECT_EXIT(
        {
            prepare_thread_for_overflow_report();
            forbid(SYS_sigaltstack);
            std::exit(0);
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft
