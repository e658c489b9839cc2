#include "weft/stack/default_stacks.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft {
namespace {

// Held from before main until after it, and released when everything else is destroyed.
struct static_user {
    stack held = default_stacks().acquire();
    ~static_user() {
        default_stacks().release(held);
        default_stacks().release(default_stacks().acquire());
    }
};
static_user user;

TEST(default_stacks, can_be_used_before_and_after_main) { EXPECT_TRUE(user.held); }

TEST(default_stacks, round_a_request_up_to_a_power_of_two) {
    const struct {
        std::size_t asked, given;
    } cases[] = {{0, 16 * 1024},
                 {1, 16 * 1024},
                 {16 * 1024, 16 * 1024},
                 {16 * 1024 + 1, 32 * 1024},
                 {100'000, 128 * 1024},
                 {128 * 1024, 128 * 1024},
                 {128 * 1024 + 1, 256 * 1024},
                 {5 << 20, 8 << 20},
                 {1 << 30, 1 << 30}};
    for (const auto& c : cases)
        EXPECT_EQ(default_stacks(c.asked).stack_bytes(), c.given) << c.asked;
    EXPECT_EQ(default_stacks().stack_bytes(), default_stack_bytes);
}

TEST(default_stacks, are_empty_above_the_largest_size_class) {
    for (const std::size_t asked :
         {(std::size_t{1} << 30) + 1, ~std::size_t{0} / 2, ~std::size_t{0}}) {
        EXPECT_FALSE(default_stacks(asked));
        EXPECT_FALSE(default_stacks(asked).acquire());
        EXPECT_EQ(default_stack_pool(asked), nullptr);
    }
}

TEST(default_stacks, of_every_size_class_can_be_acquired) {
    // With pointers of 32 bits the address space may have no room for the largest.
    constexpr std::size_t largest = std::size_t{1} << (sizeof(void*) == 8 ? 30 : 28);
    for (std::size_t bytes = 16 * 1024; bytes <= largest; bytes *= 2) {
        const stack_allocator_ref source = default_stacks(bytes);
        const stack s = source.acquire();
        ASSERT_TRUE(s) << bytes;
        EXPECT_GE(s.bytes(), bytes);
        *s.limit = s.top[-1] = std::byte{1};
        source.release(s);
    }
    trim_default_stacks();
}

TEST(default_stacks, of_one_size_class_share_a_pool) {
    EXPECT_EQ(default_stacks(100'000), default_stacks(128 * 1024));
    EXPECT_NE(default_stacks(64 * 1024), default_stacks(128 * 1024));
    EXPECT_EQ(stack_allocator_ref(*default_stack_pool(64 * 1024)), default_stacks(64 * 1024));
}

TEST(default_stacks, are_trimmed_together_up_to_the_count) {
    trim_default_stacks();
    std::vector<stack> small(30);
    std::vector<stack> large(30);
    for (stack& s : small) s = default_stacks(16 * 1024).acquire();
    for (stack& s : large) s = default_stacks(256 * 1024).acquire();
    for (const stack s : small) default_stacks(16 * 1024).release(s);
    for (const stack s : large) default_stacks(256 * 1024).release(s);
    EXPECT_EQ(trim_default_stacks(40), 40u);
    EXPECT_EQ(default_stack_pool(256 * 1024)->stats().free_count, 0u);
    EXPECT_EQ(default_stack_pool(16 * 1024)->stats().free_count, 20u);
    EXPECT_EQ(trim_default_stacks(), 20u);
}

TEST(default_stacks, serve_every_thread) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 300; ++i) {
                stack held[20];
                for (stack& s : held) {
                    s = default_stacks(32 * 1024).acquire();
                    s.top[-1] = std::byte{1};
                }
                for (const stack s : held) default_stacks(32 * 1024).release(s);
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(default_stack_pool(32 * 1024)->stats().used_count, 0u);
}

}  // namespace
}  // namespace weft
