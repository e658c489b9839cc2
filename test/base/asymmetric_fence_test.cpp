// What luck finds; every interleaving is in test/model/asymmetric_fence_test.cpp.
#include "weft/base/detail/asymmetric_fence.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <thread>
#include <type_traits>

#include "test/support/slow.hpp"

#if WEFT_LINUX
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft {
namespace {

static_assert(sizeof(detail::asymmetric_fence) == 1);
static_assert(std::is_trivially_copyable_v<detail::asymmetric_fence>);

#if WEFT_LINUX  // the only system with membarrier
TEST(asymmetric_fence, is_free_where_membarrier_works) {
    EXPECT_EQ(detail::asymmetric_fence().is_free(), detail::membarrier_works());
    EXPECT_FALSE(detail::asymmetric_fence::full().is_free());
    const long offers = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    const bool offered = offers > 0 && (offers & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    EXPECT_EQ(detail::asymmetric_fence().is_free(), offered && !WEFT_TSAN);
    if (WEFT_TSAN) {
        EXPECT_FALSE(detail::asymmetric_fence().is_free()) << "ThreadSanitizer does not see it";
    }
}

#endif

TEST(asymmetric_fence, is_the_same_in_all_threads) {
    const bool here = detail::asymmetric_fence().is_free();
    bool there = !here;
    std::thread([&] { there = detail::asymmetric_fence().is_free(); }).join();
    EXPECT_EQ(there, here);
}

#if WEFT_LINUX
// As a sandbox may: membarrier is no longer there.
bool forbid_membarrier() {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {std::size(filter), filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(asymmetric_fence_death, aborts_in_heavy_when_membarrier_is_refused) {
    if (!detail::membarrier_works()) GTEST_SKIP() << "both sides are full fences here";
    const auto child = [] {
        if (!forbid_membarrier())
            std::fputs("weft: asymmetric_fence: not to be tried here", stderr);
        detail::asymmetric_fence::heavy();
        std::abort();
    };
    EXPECT_DEATH(child(), "weft: asymmetric_fence: ");
}
#endif

// Each thread sets its own word and checks the other's, in as many rounds: in no round do both read
// the old value. Returns how often they did.
template <class Left, class Right>
int both_missed(int rounds, Left left_fence, Right right_fence) {
    atomic<int> x{0}, y{0}, ended{0};
    bool left_saw = false, right_saw = false;
    int missed = 0;
    std::thread right([&] {
        for (int round = 1; round <= rounds; ++round) {
            while (ended.load(std::memory_order_acquire) < 2 * round - 2) detail::spin_yield();
            y.store(round, std::memory_order_relaxed);
            right_fence();
            right_saw = x.load(std::memory_order_relaxed) == round;
            ended.fetch_add(1, std::memory_order_acq_rel);
            while (ended.load(std::memory_order_acquire) < 2 * round) detail::spin_yield();
        }
    });
    for (int round = 1; round <= rounds; ++round) {
        x.store(round, std::memory_order_relaxed);
        left_fence();
        left_saw = y.load(std::memory_order_relaxed) == round;
        // The left thread comes last, so that it may judge and clear both.
        while (ended.load(std::memory_order_acquire) < 2 * round - 1) detail::spin_yield();
        missed += !left_saw && !right_saw;
        ended.fetch_add(1, std::memory_order_acq_rel);
    }
    right.join();
    return missed;
}

TEST(asymmetric_fence, prevents_store_buffering_on_real_threads) {
    const int rounds = testing::slow ? 2'000 : 20'000;
    const auto light = [fence = detail::asymmetric_fence()] { fence.light(); };
    const auto full = [fence = detail::asymmetric_fence::full()] { fence.light(); };
    const auto heavy = [] { detail::asymmetric_fence::heavy(); };
    EXPECT_EQ(both_missed(rounds, light, heavy), 0);
    EXPECT_EQ(both_missed(rounds, heavy, light), 0);
    EXPECT_EQ(both_missed(rounds, full, heavy), 0);
    EXPECT_EQ(both_missed(rounds, full, full), 0);
}

}  // namespace
}  // namespace weft
