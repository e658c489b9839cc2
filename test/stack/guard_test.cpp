#include "weft/stack/detail/guard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "test/stack/memory_probe.hpp"
#include "test/support/touch.hpp"

namespace weft::detail {
namespace {

class guard : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_NE(page.begin, nullptr); }
    void TearDown() override { system_memory.unmap(page); }

    memory_range page{system_memory.map(page_bytes()), page_bytes()};
};

using guard_death = guard;

using testing::touch;

TEST_F(guard_death, by_marker_faults) {
    if (!markers_work()) GTEST_SKIP() << "this kernel has no guard markers";
    ASSERT_EQ(install_fault_guard(page), guard_kind::marker);
    EXPECT_DEATH(touch(page.begin), "");
    EXPECT_DEATH(touch(page.begin + page.bytes - 1), "");
}

TEST_F(guard_death, by_marker_faults_after_its_memory_was_discarded) {
    if (!markers_work()) GTEST_SKIP() << "this kernel has no guard markers";
    if (install_markers(&page, 1) != 1) {
        ASSERT_EQ(install_fault_guard(page), guard_kind::marker);
    }
    system_memory.advise(page, advice::drop);
    EXPECT_DEATH(touch(page.begin), "");
}

#if WEFT_LINUX  // the only system with markers, and with a limit of mappings
TEST_F(guard, by_marker_is_used_only_if_a_test_marker_faults) {
    EXPECT_EQ(a_marker_faults(system_memory), markers_work());
    static int unmapped;
    unmapped = 0;
    os_memory emulated = system_memory;
    emulated.unmap = [](memory_range r) noexcept { return ++unmapped, system_memory.unmap(r); };
    emulated.advise = [](memory_range, advice) noexcept { return true; };
    EXPECT_FALSE(a_marker_faults(emulated));
    emulated.advise = [](memory_range, advice) noexcept { return false; };
    EXPECT_FALSE(a_marker_faults(emulated));
    EXPECT_EQ(unmapped, 2) << "each page that was tried is gone";
    emulated.map = [](std::size_t) noexcept -> std::byte* { return nullptr; };
    EXPECT_FALSE(a_marker_faults(emulated));
}
#endif

TEST_F(guard_death, by_protection_faults) {
    test::failing_memory memory;
    memory.no_markers = true;
    ASSERT_EQ(install_fault_guard(page), guard_kind::protection);
    EXPECT_DEATH(touch(page.begin), "");
    release_guard(guard_kind::protection);
}

TEST_F(guard, counts_only_protections) {
    test::failing_memory memory;
    memory.no_markers = true;
    const std::size_t before = protection_count();
    ASSERT_EQ(install_fault_guard(page), guard_kind::protection);
    EXPECT_EQ(protection_count(), before + 1);
    release_guard(guard_kind::marker);
    release_guard(guard_kind::canary);
    EXPECT_EQ(protection_count(), before + 1);
    release_guard(guard_kind::protection);
    EXPECT_EQ(protection_count(), before);
}

TEST_F(guard, refused_by_the_system_is_none_and_not_counted) {
    test::failing_memory memory;
    memory.no_markers = true;
    memory.no_protect = true;
    const std::size_t before = protection_count();
    EXPECT_EQ(install_fault_guard(page), guard_kind::none);
    EXPECT_EQ(protection_count(), before);
    touch(page.begin);  // and the page is as it was
}

#if WEFT_LINUX
TEST_F(guard, stops_adding_protections_at_its_budget) {
    EXPECT_GT(protection_budget(), 0u);
    test::failing_memory memory;
    memory.no_markers = true;
    detail::os.protect = [](memory_range) noexcept { return true; };
    const std::size_t before = protection_count();
    std::size_t got = 0;
    while (install_fault_guard(page) == guard_kind::protection) ++got;
    EXPECT_EQ(got + before, protection_budget());
    while (got-- != 0) release_guard(guard_kind::protection);
    EXPECT_EQ(protection_count(), before);
}

TEST_F(guard, budget_is_at_most_half_of_the_systems_mapping_limit) {
    const std::string file = ::testing::TempDir() + "weft_guard_test_mappings";
    std::ofstream(file) << "10427\n";
    EXPECT_EQ(mapping_limit(file.c_str()), 10427u);
    std::remove(file.c_str());
    EXPECT_EQ(mapping_limit(file.c_str()), 65530u) << "the kernel's default";
    EXPECT_EQ(protection_budget(), mapping_limit() / 4) << "each guard takes two";
}
#endif

TEST_F(guard, by_canary_detects_a_changed_byte_below_the_limit) {
    std::byte* limit = page.begin + page.bytes;
    write_canary(limit);
    EXPECT_TRUE(canary_intact(limit));
    limit[-1] ^= std::byte{1};
    EXPECT_FALSE(canary_intact(limit));
    limit[-1] ^= std::byte{1};
    limit[-static_cast<std::ptrdiff_t>(canary_bytes)] ^= std::byte{0x80};
    EXPECT_FALSE(canary_intact(limit));
}

TEST_F(guard, by_canary_differs_from_stack_to_stack) {
    std::byte* limit = page.begin + page.bytes;
    write_canary(limit);
    std::copy(limit - canary_bytes, limit, limit - 2 * canary_bytes);
    EXPECT_FALSE(canary_intact(limit - canary_bytes));
}

}  // namespace
}  // namespace weft::detail
