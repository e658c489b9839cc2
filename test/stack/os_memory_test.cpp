#include "weft/stack/detail/os_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/stack/memory_probe.hpp"

#if WEFT_LINUX
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft::detail {
namespace {

struct mapping {
    explicit mapping(std::size_t pages)
        : range{os.map(pages * page_bytes()), pages * page_bytes()} {}
    ~mapping() { os.unmap(range); }
    memory_range range;
    std::byte* page(std::size_t i) const { return range.begin + i * page_bytes(); }
};

std::size_t page_bytes_of_system() {
#if WEFT_WINDOWS
    SYSTEM_INFO of;
    ::GetSystemInfo(&of);
    return of.dwPageSize;
#else
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
#endif
}

TEST(os_memory, reports_the_page_size) {
    EXPECT_EQ(page_bytes(), page_bytes_of_system());
    EXPECT_EQ(round_to_page(1), page_bytes());
    EXPECT_EQ(round_to_page(page_bytes()), page_bytes());
    EXPECT_EQ(round_to_page(0), 0u);
}

TEST(os_memory, maps_zeroed_memory_that_is_committed_on_touch) {
    mapping m(64);
    ASSERT_NE(m.range.begin, nullptr);
    EXPECT_EQ(test::resident_pages(m.range.begin, m.page(64)), 0u);
    EXPECT_TRUE(
        std::all_of(m.range.begin, m.page(64), [](std::byte b) { return b == std::byte{}; }));
}

TEST(os_memory, map_of_an_impossible_size_returns_null) {
    EXPECT_EQ(os.map(~std::size_t{0} - page_bytes() + 1), nullptr);
}

TEST(os_memory, discards_only_the_whole_pages_of_a_range) {
    mapping m(4);
    for (std::size_t i = 0; i < 4; ++i) *m.page(i) = std::byte{7};
    EXPECT_EQ(discard_pages(m.page(0) + 1, m.page(3) + 1), 2 * page_bytes());
    EXPECT_EQ(*m.page(0), std::byte{7});
    if (!WEFT_WINDOWS) {  // where what is discarded may also be as it was
        EXPECT_EQ(*m.page(1), std::byte{0});
        EXPECT_EQ(*m.page(2), std::byte{0});
    }
    EXPECT_EQ(*m.page(3), std::byte{7});
}

TEST(os_memory, discards_nothing_without_a_whole_page) {
    mapping m(2);
    *m.page(0) = std::byte{7};
    EXPECT_EQ(discard_pages(m.page(0) + 1, m.page(1) + 1), 0u);
    EXPECT_EQ(discard_pages(m.page(1), m.page(0)), 0u);
    EXPECT_EQ(*m.page(0), std::byte{7});
}

#if WEFT_LINUX  // the only system with such a call
// process_madvise on oneself, Linux 6.15.
bool kernel_advises_many(const memory_range& r) {
    return ::syscall(440, -10000, &r, 1, static_cast<int>(advice::drop), 0u) >= 0;
}

TEST(os_memory, advises_several_ranges_in_one_call) {
    mapping m(6);
    if (!kernel_advises_many(m.range)) GTEST_SKIP() << "this kernel advises one range at a time";
    for (std::size_t i = 0; i < 6; ++i) *m.page(i) = std::byte{7};
    const memory_range ranges[] = {
        {m.page(0), page_bytes()}, {m.page(2), 2 * page_bytes()}, {m.page(5), page_bytes()}};
    EXPECT_EQ(os.advise_many(ranges, 3, advice::drop), 3u);
    const std::byte expected[] = {std::byte{0}, std::byte{7}, std::byte{0},
                                  std::byte{0}, std::byte{7}, std::byte{0}};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(*m.page(i), expected[i]) << i;
}

#endif

TEST(os_memory, counts_only_advised_ranges) {
    mapping m(2);
    *m.page(0) = std::byte{7};
    std::byte* hole = os.map(page_bytes());
    os.unmap({hole, page_bytes()});
    const memory_range ranges[] = {{m.page(0), page_bytes()}, {hole, page_bytes()}};
    EXPECT_LE(os.advise_many(ranges, 2, advice::drop), 1u);
}

}  // namespace
}  // namespace weft::detail
