#include "weft/stack/slab_stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "test/stack/memory_probe.hpp"
#include "test/support/touch.hpp"
#include "weft/base/platform.hpp"
#include "weft/stack/detail/colour_offset.hpp"
#include "weft/stack/detail/os_memory.hpp"

namespace weft {
namespace {

using testing::touch;

std::vector<stack> take(slab_stack& stacks, std::size_t count) {
    std::vector<stack> all(count);
    for (stack& s : all) s = stacks.acquire();
    return all;
}

void release_all(slab_stack& stacks, const std::vector<stack>& all) {
    for (const stack s : all) stacks.release(s);
}

TEST(slab_stack, has_the_requested_size_and_no_overlaps) {
    for (const std::size_t bytes : {1u, 16384u, 70000u, 131072u, 3u << 20}) {
        slab_stack stacks(bytes);
        std::vector<stack> all = take(stacks, 40);
        stacks.check();
        std::ranges::sort(all, {}, &stack::limit);
        for (std::size_t i = 0; i < all.size(); ++i) {
            ASSERT_TRUE(all[i]);
            EXPECT_GE(all[i].bytes(), bytes);
            EXPECT_GE(all[i].bytes(), stacks.stack_bytes());
            EXPECT_EQ(reinterpret_cast<std::size_t>(all[i].top) % 64, 0u);
            EXPECT_TRUE(i == 0 || all[i - 1].top + 4096 <= all[i].limit) << "a guard between";
        }
        release_all(stacks, all);
    }
}

TEST(slab_stack_death, overflow_of_each_stack_faults) {
    slab_stack stacks(16384);
    const std::vector<stack> all = take(stacks, 12);
    for (const stack s : all) EXPECT_DEATH(touch(s.limit - 1), "");
    release_all(stacks, all);
}

TEST(slab_stack_death, overflow_of_a_recycled_stack_faults) {
    slab_stack stacks(16384);
    const stack other = stacks.acquire();
    stack s = stacks.acquire();
    stacks.release(s);
    s = stacks.acquire();
    EXPECT_DEATH(touch(s.limit - 1), "");
    stacks.release(s);
    stacks.release(other);
}

TEST(slab_stack, neighbours_have_offsets_far_apart) {
    slab_stack stacks(65536);
    const std::vector<stack> all = take(stacks, 96);
    std::set<std::size_t> offsets;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto at = [&](std::size_t n) {
            return static_cast<long>((reinterpret_cast<std::size_t>(all[n].top) + 4095) % 4096 /
                                     64);
        };
        offsets.insert(reinterpret_cast<std::size_t>(all[i].top) % 4096);
        EXPECT_TRUE(i == 0 || std::abs(at(i) - at(i - 1)) >= 13) << i;
    }
    EXPECT_EQ(offsets.size(), detail::colour_count);
    release_all(stacks, all);
}

TEST(slab_stack, touches_no_stack_and_shallow_use_costs_one_page) {
    slab_stack stacks(65536);
    const std::vector<stack> all = take(stacks, 200);
    for (const stack s : all) EXPECT_EQ(test::resident_pages(s), 0u);
    for (const stack s : all) test::use(s, 1024);
    for (const stack s : all) EXPECT_EQ(test::resident_pages(s), 1u);
    release_all(stacks, all);
}

TEST(slab_stack, released_stack_has_no_resident_memory) {
    slab_stack stacks(65536);
    const std::vector<stack> all = take(stacks, 100);
    for (const stack s : all) test::use(s, 60000);
    // All but the ends of each slab, so that no slab is released.
    for (std::size_t i = 1; i < all.size(); i += 2) stacks.release(all[i]);
    for (std::size_t i = 1; i < all.size(); i += 2) EXPECT_EQ(test::resident_pages(all[i]), 0u);
    for (std::size_t i = 0; i < all.size(); i += 2) EXPECT_GE(test::resident_pages(all[i]), 14u);
    stacks.check();
    for (std::size_t i = 0; i < all.size(); i += 2) stacks.release(all[i]);
}

TEST(slab_stack, stacks_released_at_once_have_no_resident_memory) {
    slab_stack stacks(65536);
    std::vector<stack> all = take(stacks, 300);
    for (const stack s : all) test::use(s, 8192);
    const std::vector<stack> kept(all.begin(), all.begin() + 20);
    all.erase(all.begin(), all.begin() + 20);
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    const std::size_t mapped = stacks.mapped_bytes();
    stacks.release(all);
    stacks.check();
    EXPECT_LT(stacks.mapped_bytes(), mapped);
    EXPECT_EQ(stacks.out_count(), kept.size());
    for (const stack s : kept) EXPECT_GE(test::resident_pages(s), 2u);
    stacks.release(kept);
}

TEST(slab_stack, neighbours_released_together_need_one_system_call) {
    test::failing_memory memory;
    slab_stack stacks(16384);
    const stack kept = stacks.acquire();
    std::vector<stack> all = take(stacks, 34);
    ASSERT_EQ(memory.mapping_count(), 1u) << "of one slab";
    for (int round = 0; round < 2; ++round) {
        const int before = memory.advise_count;
        stacks.release(all);
        EXPECT_EQ(memory.advise_count, before + 1);
        all = take(stacks, 34);  // the last first
    }
    release_all(stacks, all);
    stacks.release(kept);
}

TEST(slab_stack, unmaps_a_slab_without_stacks_in_use) {
    test::failing_memory memory;
    {
        slab_stack stacks(65536);
        const std::vector<stack> all = take(stacks, 500);
        EXPECT_GT(memory.mapping_count(), 2u);
        release_all(stacks, all);
        EXPECT_EQ(memory.mapping_count(), 0u);
        EXPECT_EQ(stacks.mapped_bytes(), 0u);
        stacks.check();
        stacks.release(stacks.acquire());
    }
    EXPECT_TRUE(memory.nothing_leaked());
}

// An allocation on the heap above them would keep them there.
TEST(slab_stack, keeps_its_metadata_in_the_slab_and_not_on_the_heap) {
    test::failing_memory memory;
    slab_stack stacks(128 * 1024);
    const stack first = stacks.acquire();
    memory.no_allocate = true;
    const std::vector<stack> all = take(stacks, 500);
    EXPECT_GT(memory.mapping_count(), 4u);
    EXPECT_EQ(stacks.out_count(), 501u);
    stacks.check();
    release_all(stacks, all);
    stacks.release(first);
    EXPECT_EQ(memory.mapping_count(), 0u);
    memory.no_allocate = false;
}

TEST(slab_stack_death, release_of_a_foreign_stack_aborts) {
    slab_stack stacks(16384);
    slab_stack others(16384);
    const stack s = others.acquire();
    EXPECT_DEATH(stacks.release(s), "weft: release of a stack that is not out");
    const stack mine = stacks.acquire();
    EXPECT_DEATH(stacks.release({mine.limit + 64, mine.top}), "weft: release of a stack");
    EXPECT_DEATH(stacks.release({mine.limit, mine.top - 64}), "weft: release of a stack");
    stacks.release(mine);
    others.release(s);
}

TEST(slab_stack_death, second_release_aborts) {
    slab_stack stacks(16384);
    const stack other = stacks.acquire();
    const stack s = stacks.acquire();
    stacks.release(s);
    EXPECT_DEATH(stacks.release(s), "weft: release of a stack that is not out");
    stacks.release(other);
    EXPECT_DEATH(stacks.release(other), "weft: release of a stack that is not out");
}

TEST(slab_stack_death, destruction_with_a_stack_in_use_aborts) {
    EXPECT_DEATH(
        {
            slab_stack stacks(16384);
            static_cast<void>(stacks.acquire());
        },
        "weft: destruction of a stack allocator");
}

TEST(slab_stack, new_size_applies_only_to_new_stacks) {
    slab_stack stacks(64 * 1024);
    const std::vector<stack> large = take(stacks, 30);
    stacks.release(large[0]);
    stacks.set_stack_bytes(16 * 1024);
    const std::vector<stack> small = take(stacks, 30);
    for (const stack s : small) EXPECT_LT(s.bytes(), 32u * 1024);
    for (std::size_t i = 1; i < 15; ++i) stacks.release(large[i]);
    stacks.set_stack_bytes(256 * 1024);
    const stack huge = stacks.acquire();
    EXPECT_GE(huge.bytes(), 256u * 1024);
    std::memset(huge.limit, 1, huge.bytes());
    for (std::size_t i = 15; i < 30; ++i) stacks.release(large[i]);
    stacks.check();
    stacks.release(huge);
    stacks.release(small);
    EXPECT_EQ(stacks.mapped_bytes(), 0u);
}

TEST(slab_stack, is_empty_for_excessive_sizes) {
    EXPECT_FALSE(slab_stack(~std::size_t{0}).acquire());
    EXPECT_FALSE(slab_stack(~std::size_t{0} / 2).acquire());
    EXPECT_FALSE(slab_stack(detail::most_stack_bytes + 1).acquire());
}

TEST(slab_stack, each_failing_call_gives_a_stack_or_none_and_leaks_nothing) {
    int failed = 0;
    for (int n = 1;; ++n) {
        test::failing_memory memory(n);
        bool over = false;
        {
            slab_stack stacks(128 * 1024);
            std::vector<stack> all = take(stacks, 60);
            failed += static_cast<int>(std::erase(all, stack{}));
            stacks.check();
            over = !memory.has_failed();
            memory.fail_no_more();
            for (const stack s : all) test::use(s, 4096);
            stacks.release(all);
        }
        EXPECT_TRUE(memory.nothing_leaked()) << n;
        if (over) break;
    }
    EXPECT_GT(failed, 0) << "some call must have mattered";
}

TEST(slab_stack, survives_failing_unmap_and_advise) {
    test::failing_memory memory;
    slab_stack stacks(128 * 1024);
    const auto unmap = detail::os.unmap;
    detail::os.unmap = [](detail::memory_range) noexcept { return false; };
    detail::os.advise = [](detail::memory_range, detail::advice) noexcept { return false; };
    release_all(stacks, take(stacks, 50));
    stacks.check();
    EXPECT_NE(stacks.mapped_bytes(), 0u);
    detail::os.unmap = unmap;
    const std::vector<stack> again = take(stacks, 50);
    stacks.check();
    release_all(stacks, again);
    EXPECT_EQ(stacks.mapped_bytes(), 0u);
}

TEST(slab_stack, discards_the_memory_of_a_slab_when_unmap_fails) {
    test::failing_memory memory;
    slab_stack stacks(128 * 1024);
    const stack s = stacks.acquire();
    test::use(s, 8192);
    const auto unmap = detail::os.unmap;
    detail::os.unmap = [](detail::memory_range) noexcept { return false; };
    stacks.release(s);
    EXPECT_EQ(test::resident_pages(s), 0u);
    detail::os.unmap = unmap;
}

TEST(slab_stack, maps_a_smaller_slab_when_a_full_one_fails) {
    test::failing_memory memory;
    detail::os.map = [](std::size_t bytes) noexcept -> std::byte* {
        return bytes > 256 * 1024 ? nullptr : detail::system_memory.map(bytes);
    };
    detail::os.unmap = detail::system_memory.unmap;
    slab_stack stacks(128 * 1024);
    const std::vector<stack> all = take(stacks, 10);
    for (const stack s : all) EXPECT_TRUE(s);
    release_all(stacks, all);
}

class slab_stack_canary : public ::testing::Test {
protected:
    slab_stack_canary() { memory.no_markers = memory.no_protect = true; }
    test::failing_memory memory;
};
using slab_stack_canary_death = slab_stack_canary;

TEST_F(slab_stack_canary, replaces_a_guard_that_is_unavailable) {
    slab_stack stacks(16384);
    EXPECT_FALSE(stacks.has_canaries());
    stack s = stacks.acquire();
    EXPECT_TRUE(stacks.has_canaries());
    std::memset(s.limit, 1, s.bytes());
    stacks.inspect(s);
    const stack other = stacks.acquire();
    stacks.release(s);
    EXPECT_EQ(test::resident_pages(s), 0u);
    s = stacks.acquire();
    stacks.inspect(s);
    stacks.release(s);
    stacks.release(other);
    EXPECT_FALSE(stacks.has_canaries());
}

TEST_F(slab_stack_canary_death, is_checked_on_release) {
    slab_stack stacks(16384);
    const stack s = stacks.acquire();
    std::byte& below = s.limit[-1];
    below ^= std::byte{1};
    EXPECT_DEATH(stacks.inspect(s), "weft: a stack has overflowed");
    EXPECT_DEATH(stacks.release(s), "weft: a stack has overflowed");
    below ^= std::byte{1};
    stacks.release(s);
}

TEST(slab_stack, counts_its_protections_and_returns_them) {
    test::failing_memory memory;
    memory.no_markers = true;
    const std::size_t before = detail::protection_count();
    slab_stack stacks(16384);
    const std::vector<stack> all = take(stacks, 100);
    EXPECT_EQ(detail::protection_count(), before + 100);
    EXPECT_FALSE(stacks.has_canaries());
    release_all(stacks, all);
    EXPECT_EQ(detail::protection_count(), before);
}

#if WEFT_LINUX  // the only system with markers
TEST(slab_stack, needs_few_mappings_for_a_hundred_thousand_guarded_stacks) {
    if (!detail::markers_work()) GTEST_SKIP() << "this kernel has no guard markers";
    // With pointers of 32 bits the address space has room for no more.
    constexpr std::size_t most = sizeof(void*) == 8 ? 100'000 : 20'000;
    const std::size_t count = WEFT_ASAN || WEFT_TSAN ? 2'000 : most;
    const std::size_t lines = test::mapping_lines();
    slab_stack stacks(64 * 1024);
    const std::vector<stack> all = take(stacks, count);
    for (const stack s : all) {
        ASSERT_TRUE(s);
        s.top[-1] = std::byte{1};
    }
    EXPECT_FALSE(stacks.has_canaries());
    EXPECT_LT(test::mapping_lines(), lines + 1000);
    stacks.check();
    stacks.release(all);
}
#endif

TEST(slab_stack, stays_consistent_through_random_use) {
    std::mt19937 random(7);
    slab_stack stacks(16 * 1024);
    std::vector<stack> out;
    for (int i = 0; i < 20'000; ++i) {
        if (out.empty() || random() % 1000 < (i / 4000 % 2 == 0 ? 600u : 400u)) {
            out.push_back(stacks.acquire());
            ASSERT_TRUE(out.back());
            out.back().top[-1] = std::byte{1};
        } else {
            std::swap(out[random() % out.size()], out.back());
            stacks.release(out.back());
            out.pop_back();
        }
        if (i % 500 == 0) {
            if (random() % 4 == 0) stacks.set_stack_bytes((1 + random() % 3) * 16 * 1024);
            stacks.check();
            EXPECT_EQ(stacks.out_count(), out.size());
        }
    }
    stacks.release(out);
    EXPECT_EQ(stacks.mapped_bytes(), 0u);
}

}  // namespace
}  // namespace weft
