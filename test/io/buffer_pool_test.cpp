#include "weft/io/detail/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace {

using weft::detail::buffer_pool;

struct pool {
    pool(unsigned count, std::size_t bytes) { all->resize(count, bytes); }
    pool(const pool&) = delete;
    ~pool() { all->release(); }
    buffer_pool* operator->() const { return all; }
    buffer_pool* all = new buffer_pool;
};

TEST(buffer_pool, allocates_from_the_heap_when_all_buffers_are_out) {
    const pool p(2, 64);
    std::set<std::byte*> out;
    for (int i = 0; i < 10; ++i) {
        std::byte* const b = p->take();
        std::memset(b, i, p->bytes());
        EXPECT_TRUE(out.insert(b).second) << "lent twice";
    }
    EXPECT_EQ(p->out_count(), 10u);
    for (std::byte* b : out) p->release_buffer(b);
    EXPECT_EQ(p->out_count(), 0u);
}

TEST(buffer_pool, reuses_the_last_returned_buffer_first) {
    const pool p(8, 100);
    EXPECT_EQ(p->bytes(), 128u);
    std::byte* const a = p->take();
    std::byte* const b = p->take();
    p->release_buffer(a);
    p->release_buffer(b);
    EXPECT_EQ(p->take(), b);
    EXPECT_EQ(p->take(), a);
    p->release_buffer(a);
    p->release_buffer(b);
}

TEST(buffer_pool_death, cannot_be_resized_after_the_first_was_taken) {
    const pool p(4, 64);
    p->release_buffer(p->take());
    EXPECT_DEATH(p->resize(8, 128), "buffers are resized after the first was borrowed");
}

TEST(buffer_pool, outlives_its_owner_while_a_buffer_is_out) {
    auto* const p = new buffer_pool;
    std::byte* const b = p->take();
    p->release();
    std::memset(b, 1, p->bytes());
    p->release_buffer(b);
}

// What the system has, as a test plays it.
TEST(buffer_pool, provides_buffers_to_the_kernel_again_after_use) {
    const pool p(4, 64);
    std::byte* const early = p->take();
    std::vector<unsigned> there;
    ASSERT_TRUE(p->hand_to(
        [](void* to, std::byte*, unsigned index) noexcept {
            static_cast<std::vector<unsigned>*>(to)->push_back(index);
        },
        &there));
    EXPECT_EQ(there.size(), 3u);
    p->release_buffer(early);
    EXPECT_EQ(there.size(), 4u);
    std::byte* const b = p->chosen(there.back());
    EXPECT_EQ(b, early);
    std::byte* const heap = p->take();
    EXPECT_NE(heap, nullptr) << "the system has all that there are";
    EXPECT_EQ(p->out_count(), 2u);
    p->release_buffer(heap);
    p->release_buffer(b);
    EXPECT_EQ(there.size(), 5u);
    p->hand_to_nobody();
}

}  // namespace
