#include "weft/hook/detail/shared_child.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft/base/platform.hpp"
#include "weft/hook/detail/in_process.hpp"

extern "C" int __clone(int (*)(void*), void*, int, void*, ...) noexcept;

namespace weft::hook {
namespace {

// Before the first shared child, no call asks the system which process is the caller.
TEST(shared_child, is_expected_once_one_has_been_created) {
    const auto is_told_of = [](auto make) {
        clear_shared_child();
        const pid_t child = make();
        if (child == 0) ::_exit(0);
        EXPECT_TRUE(may_be_shared_child());
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    };
    is_told_of([] { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); });
#if defined(SYS_fork)
    is_told_of([] { return static_cast<pid_t>(::syscall(SYS_fork)); });
#endif
    is_told_of([] { return ::_Fork(); });
    // ThreadSanitizer treats each as a fork, even where the child has this memory, and starts no
    // thread after one.
    if (WEFT_TSAN == 0)
        for (auto* const make : {::clone, __clone})
            is_told_of([=] {
                alignas(16) static char stack[64 * 1024];
                return make([](void*) { return 0; }, stack + sizeof stack,
                            CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
            });
    clear_shared_child();
    const pid_t child = ::vfork();
    if (child == 0) ::_exit(is_own_process() ? 1 : 0);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(may_be_shared_child());
#if defined(__x86_64__) && !WEFT_BACKEND_UCONTEXT
    clear_shared_child();
    EXPECT_FALSE(may_be_shared_child());
#endif
}

}  // namespace
}  // namespace weft::hook
