#include "weft/queue/detail/ring.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <string>

#if WEFT_LINUX
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace {

using weft::detail::ring;

template <class T>
void drain(ring<T>& r) {
    while (!r.empty()) r.pop_front();
}

// Each value goes in and out `times` times, one entry at a time.
void turn(ring<int>& r, std::size_t times) {
    for (std::size_t n = 0; n < times; ++n) {
        r.push_back(7);
        ASSERT_EQ(r.pop_front(), 7);
    }
}

TEST(ring, allocates_nothing_at_first) {
    static constinit ring<int> r;
    EXPECT_TRUE(r.empty());
    EXPECT_EQ(r.count(), 0u);
    EXPECT_EQ(r.capacity(), 0u);
    r.check();
    r.trim();
    EXPECT_EQ(r.capacity(), 0u);
}

TEST(ring, is_first_in_first_out_across_the_wraparound) {
    ring<int> r;
    int in = 0, out = 0;
    for (int round = 0; round < 1000; ++round) {
        for (int n = 0; n < round % 13; ++n) r.push_back(in++);
        for (int n = 0; n < round % 13; ++n) ASSERT_EQ(r.pop_front(), out++);
        r.check();
    }
    EXPECT_EQ(r.capacity(), ring<int>::least_count);
}

TEST(ring, pops_elements_pushed_to_the_front_first) {
    ring<int> r;
    for (int n = 0; n < 40; ++n) r.push_front(n);
    for (int n = 39; n >= 0; --n) ASSERT_EQ(r.pop_front(), n);
    r.push_back(2);
    r.push_front(1);
    EXPECT_EQ(r.pop_front(), 1);
    EXPECT_EQ(r.pop_front(), 2);
}

TEST(ring, doubles_when_full) {
    ring<std::size_t> r;
    std::size_t capacity = ring<std::size_t>::least_count;
    for (std::size_t n = 0; n < 5000; ++n) {
        if (n == capacity) capacity *= 2;
        r.push_back(n);
        ASSERT_EQ(r.capacity(), capacity);
    }
    for (std::size_t n = 0; n < 5000; ++n) ASSERT_EQ(r[n], n);
    drain(r);
}

TEST(ring, try_push_grows_too) {
    ring<int> r;
    for (int n = 0; n < 1000; ++n) EXPECT_TRUE(r.try_push_back(n));
    r.check();
    for (int n = 0; n < 1000; ++n) ASSERT_EQ(r.pop_front(), n);
}

TEST(ring, indexes_ahead_without_popping) {
    ring<int> r;
    for (int n = 0; n < 10; ++n) r.push_back(n);
    for (int n = 0; n < 10; ++n) {
        for (std::size_t ahead = 0; ahead < r.count(); ++ahead)
            ASSERT_EQ(r[ahead], n + static_cast<int>(ahead));
        r.pop_front();
    }
}

TEST(ring, shrinks_when_oversized_for_long) {
    ring<int> r;
    for (int n = 0; n < 1024; ++n) r.push_back(n);
    drain(r);
    EXPECT_EQ(r.capacity(), 1024u);
    turn(r, 9 * 1024);
    EXPECT_EQ(r.capacity(), 512u) << "it looks eight times before it halves again";
    turn(r, 16 * 1024);
    EXPECT_EQ(r.capacity(), ring<int>::least_count);
    r.check();
}

TEST(ring, releases_its_blocks) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    const std::size_t before = weft::detail::block_cache::stats().used_bytes;
    {
        ring<int> r;
        for (int n = 0; n < 100; ++n) r.push_back(n);
        EXPECT_GT(weft::detail::block_cache::stats().used_bytes, before);
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, before);
}

#if WEFT_LINUX  // elsewhere test/base/pages_test.cpp has to do
TEST(ring, returns_the_pages_of_a_large_buffer_to_the_system) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* at;
    {
        ring<char> r;
        r.reserve(8 * page);
        r.push_back('a');
        at = &r[0];
    }
    unsigned char is_resident;
    EXPECT_EQ(::mincore(at, page, &is_resident), -1);
    EXPECT_EQ(errno, ENOMEM);
}
#endif

TEST(ring, keeps_the_capacity_a_repeated_burst_needs) {
    ring<int> r;
    for (int round = 0; round < 200; ++round) {
        for (int n = 0; n < 1000; ++n) r.push_back(n);
        ASSERT_EQ(r.capacity(), 1024u);
        for (int n = 0; n < 1000; ++n) ASSERT_EQ(r.pop_front(), n);
        ASSERT_EQ(r.capacity(), 1024u);
    }
}

TEST(ring, keeps_its_reserved_capacity) {
    ring<int> r;
    r.reserve(1000);
    EXPECT_EQ(r.capacity(), 1024u);
    turn(r, 100 * 1024);
    r.trim();
    EXPECT_EQ(r.capacity(), 1024u);
    r.check();
    r.reserve(0);
    r.trim();
    EXPECT_EQ(r.capacity(), ring<int>::least_count);
}

TEST(ring, trim_keeps_the_elements) {
    ring<int> r;
    for (int n = 0; n < 1000; ++n) r.push_back(n);
    for (int n = 0; n < 960; ++n) r.pop_front();
    r.trim();
    EXPECT_EQ(r.capacity(), 64u);
    r.check();
    for (int n = 960; n < 1000; ++n) ASSERT_EQ(r.pop_front(), n);
}

TEST(ring, failed_reserve_changes_nothing) {
    ring<int> r;
    r.push_back(1);
    EXPECT_THROW(r.reserve(SIZE_MAX / 2), std::bad_alloc);
    EXPECT_THROW(r.reserve(SIZE_MAX), std::bad_alloc);
    EXPECT_EQ(r.capacity(), ring<int>::least_count);
    r.check();
    EXPECT_EQ(r.pop_front(), 1);
}

TEST(ring, supports_and_destroys_move_only_elements) {
    auto shared = std::make_shared<int>(1);
    {
        ring<std::shared_ptr<int>> r;
        for (int n = 0; n < 100; ++n) r.push_back(shared);
        for (int n = 0; n < 30; ++n) r.pop_front();
        EXPECT_EQ(shared.use_count(), 71);
    }
    EXPECT_EQ(shared.use_count(), 1);
    ring<std::unique_ptr<std::string>> r;
    for (int n = 0; n < 100; ++n) r.push_back(std::make_unique<std::string>("x"));
    EXPECT_EQ(*r.pop_front(), "x");
    r.clear();
    EXPECT_TRUE(r.empty());
}

// The same as a deque does, over random operations.
TEST(ring, matches_a_deque_under_random_operations) {
    ring<std::uint64_t> r;
    std::deque<std::uint64_t> model;
    std::uint64_t seed = 11;
    for (int n = 0; n < 200'000; ++n) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const bool filling = n / 4096 % 2 == 0;
        const std::uint64_t dice = (seed >> 40) % 8;
        if (dice == 0) {
            r.push_front(seed);
            model.push_front(seed);
        } else if (dice < (filling ? 6u : 3u)) {
            r.push_back(seed);
            model.push_back(seed);
        } else if (!model.empty()) {
            ASSERT_EQ(r.pop_front(), model.front());
            model.pop_front();
        }
        if (seed >> 54 == 0) r.trim();
        ASSERT_EQ(r.count(), model.size());
        if (!model.empty()) {
            ASSERT_EQ(r[model.size() / 2], model[model.size() / 2]);
        }
        r.check();
    }
    drain(r);
}

#if WEFT_DEBUG && GTEST_HAS_DEATH_TEST
TEST(ring_death, aborts_on_access_beyond_the_end) {
    ring<int> r;
    EXPECT_DEATH(r.pop_front(), "ring: pop of an empty one");
    r.push_back(1);
    EXPECT_DEATH(static_cast<void>(r[1]), "ring: there is no such entry");
}
#endif

}  // namespace
