#include "weft/stack/high_water.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "test/stack/memory_probe.hpp"
#include "weft/stack/mapped_stack.hpp"
#include "weft/stack/stack_pool.hpp"

#if WEFT_LINUX
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace weft {
namespace {

const std::size_t page = detail::page_bytes();

TEST(high_water, of_an_untouched_stack_is_zero) {
    mapped_stack stacks(256 * 1024);
    const stack s = stacks.acquire();
    EXPECT_EQ(high_water_bytes(s), 0u);
    stacks.release(s);
}

TEST(high_water, is_the_deepest_touch_to_one_page) {
    mapped_stack stacks(1024 * 1024);
    for (const std::size_t depth : {1u, 64u, 5000u, 100'000u, 700'000u, 1024u * 1024}) {
        const stack s = stacks.acquire();
        s.top[-1] = std::byte{1};
        s.top[-static_cast<std::ptrdiff_t>(depth)] = std::byte{1};  // a hole above it, as by alloca
        EXPECT_GE(high_water_bytes(s), depth);
        EXPECT_LT(high_water_bytes(s), depth + page);
        stacks.release(s);
    }
}

TEST(high_water, of_a_fully_used_stack_is_its_size) {
    mapped_stack stacks(64 * 1024);
    const stack s = stacks.acquire();
    *s.limit = std::byte{1};
    EXPECT_EQ(high_water_bytes(s), s.bytes());
    stacks.release(s);
}

TEST(high_water, of_a_recycled_stack_restarts_when_reset) {
    stack_pool<> pool(256 * 1024);
    stack s = pool.acquire();
    test::use(s, 200 * 1024);
    pool.release(s);
    s = pool.acquire();
    EXPECT_GE(high_water_bytes(s), 200u * 1024);  // the earlier user's
    reset_high_water(s);
    test::use(s, 20 * 1024);
    EXPECT_GE(high_water_bytes(s), 20u * 1024);
    EXPECT_LT(high_water_bytes(s), 20u * 1024 + 2 * page);
    pool.release(s);
}

TEST(high_water, of_a_suspended_coroutine_restarts_at_its_stack_pointer) {
    mapped_stack stacks(256 * 1024);
    const stack s = stacks.acquire();
    test::use(s, 200 * 1024);
    const std::byte* sp = s.top - 10'000;
    s.top[-10'000] = std::byte{9};
    reset_high_water(s, sp);
    EXPECT_GE(high_water_bytes(s), 10'000u);
    EXPECT_LT(high_water_bytes(s), 10'000u + 128 + page);
    EXPECT_EQ(*sp, std::byte{9});
    stacks.release(s);
}

#if WEFT_LINUX  // elsewhere no file is read
TEST(high_water, leaves_no_file_descriptor_open) {
    mapped_stack stacks(64 * 1024);
    const stack s = stacks.acquire();
    const int before = ::dup(0);
    ::close(before);
    EXPECT_EQ(high_water_bytes(s), 0u);
    const int after = ::dup(0);
    ::close(after);
    EXPECT_EQ(after, before);
    stacks.release(s);
}

TEST(high_water, is_measured_without_a_free_file_descriptor) {
    mapped_stack stacks(256 * 1024);
    const stack s = stacks.acquire();
    test::use(s, 100'000);
    rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none = {0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 4711;
    const std::size_t deepest = high_water_bytes(s);
    EXPECT_EQ(errno, 4711);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_GE(deepest, 100'000u - 64);
    EXPECT_LT(deepest, 100'000u + page);
    stacks.release(s);
}
#endif

}  // namespace
}  // namespace weft
