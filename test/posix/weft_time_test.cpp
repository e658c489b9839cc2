#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "test/posix/in_c.hpp"
#include "test/support/address_space.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace {

using weft::testing::begin_in_c;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;
using namespace std::chrono_literals;

TEST(weft_sleep, lets_others_run_and_is_never_too_short) {
    weft::testing::virtual_loop l;
    weft::fiber f(
        [&] {
            const weft::time_point began = weft::now();
            EXPECT_EQ(weft_sleep(2), 0u);
            EXPECT_GE(weft::now() - began, 2s);
            EXPECT_EQ(weft_usleep(1500), 0);
            EXPECT_GE(weft::now() - began, 2s + 1500us);
            const timespec t{3, 500};
            timespec left{7, 7};
            EXPECT_EQ(weft_nanosleep(&t, &left), 0);
            EXPECT_EQ(left.tv_sec, 0);
            EXPECT_EQ(left.tv_nsec, 0);
            EXPECT_GE(weft::now() - began, 5s + 1500us + 500ns);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(weft_nanosleep, rejects_an_invalid_time) {
    for (const timespec t : {timespec{0, 1'000'000'000}, timespec{0, -1}, timespec{-1, 0}}) {
        errno = 0;
        EXPECT_EQ(weft_nanosleep(&t, nullptr), -1);
        EXPECT_EQ(errno, EINVAL);
    }
}

// From now on there is no block of memory to be had.
void use_up_memory() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    for (std::size_t n = 64; n <= weft::detail::block_cache::maximum_block_bytes; n += 64)
        while (weft::detail::block_cache::try_acquire(n) != nullptr) {
        }
}

// Only a wait on a stack that is shared takes memory.
TEST(weft_sleep, of_usleep_and_poll_fails_with_ENOMEM_without_memory) {
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "a sanitizer needs its address space";
    if (!weft::testing::address_space_can_be_limited()) GTEST_SKIP() << "memory has no limit here";
    const auto sleeps = [] {
        weft_stacks_t* stacks = nullptr;
        weft_stacks_create(&stacks, 1, 128 * 1024);
        weft_attr_t attr;
        weft_attr_init(&attr);
        weft_attr_setstacks(&attr, stacks);
        auto f = [] {
            use_up_memory();
            pollfd nothing{-1, 0, 0};
            errno = 0;
            const bool is_told = weft_usleep(1) == -1 && errno == ENOMEM;
            errno = 0;
            const bool is_told_too = weft_poll(&nothing, 1, 1) == -1 && errno == ENOMEM;
            std::_Exit(is_told && is_told_too ? 0 : 1);
        };
        run_in_c([&] { joined_in_c(begin_in_c(f, &attr)); });
    };
    EXPECT_EXIT(sleeps(), ::testing::ExitedWithCode(0), "");
}

TEST(weft_sleep, blocks_a_plain_thread) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(weft_usleep(2000), 0);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 2ms);
}

TEST(weft_poll, waits_for_another_fiber) {
    run_in_c([] {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        auto writes = [&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); };
        const weft_t t = begin_in_c(writes);
        pollfd p{ends[0], POLLIN, 0};
        EXPECT_EQ(weft_poll(&p, 1, 0), 0);
        EXPECT_EQ(weft_poll(&p, 1, -1), 1);
        EXPECT_EQ(p.revents, POLLIN);
        joined_in_c(t);
        ::close(ends[0]);
        ::close(ends[1]);
    });
}

TEST(weft_poll, on_a_plain_thread_is_poll) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    pollfd p[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}};
    EXPECT_EQ(weft_poll(p, 2, 1000), 1);
    EXPECT_EQ(p[1].revents, POLLOUT);
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
