#include "weft/base/detail/pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "weft/base/platform.hpp"

#if WEFT_WINDOWS
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace {

#if WEFT_WINDOWS
std::size_t page_bytes() { return 4096; }

bool is_mapped(void* p) {
    MEMORY_BASIC_INFORMATION at;
    return ::VirtualQuery(p, &at, sizeof at) != 0 && at.State == MEM_COMMIT;
}
#else
std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

bool is_mapped(void* p) {
    unsigned char is_resident;
    if (::mincore(p, page_bytes(), &is_resident) == 0) return true;
    EXPECT_EQ(errno, ENOMEM);
    return false;
}
#endif

TEST(pages, are_zeroed_and_writable) {
    constexpr std::size_t bytes = 3 * 4096;
    auto* const p = static_cast<unsigned char*>(weft::detail::try_acquire_pages(bytes));
    ASSERT_NE(p, nullptr);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(p[i], 0);
    std::memset(p, 1, bytes);
    weft::detail::release_pages(p, bytes);
}

TEST(pages, are_unmapped_when_released) {
    void* const p = weft::detail::try_acquire_pages(page_bytes());
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(is_mapped(p));
    weft::detail::release_pages(p, page_bytes());
    EXPECT_FALSE(is_mapped(p));
}

TEST(pages, can_be_released_in_parts_in_any_order) {
    constexpr std::size_t bytes = 64 * 1024;
    for (const std::size_t last : {0u, 1u, 2u}) {
        auto* const p = static_cast<std::byte*>(weft::detail::try_acquire_aligned_pages(4 * bytes));
        ASSERT_NE(p, nullptr);
        for (std::size_t n = 0; n < 4; ++n) {
            if (n == last) continue;
            EXPECT_TRUE(weft::detail::release_pages(p + n * bytes, bytes));
            EXPECT_FALSE(is_mapped(p + n * bytes));
            EXPECT_TRUE(is_mapped(p + last * bytes));
        }
        std::memset(p + last * bytes, 1, bytes);
        EXPECT_TRUE(weft::detail::release_pages(p + last * bytes, bytes));
        EXPECT_FALSE(is_mapped(p + last * bytes));
    }
}

TEST(pages, are_aligned_to_their_size_on_request) {
    constexpr std::size_t bytes = 64 * 1024;
    const std::size_t page = page_bytes();
    std::vector<void*> aligned, between;
    for (int n = 0; n < 20; ++n) {
        between.push_back(weft::detail::try_acquire_pages(page));
        aligned.push_back(weft::detail::try_acquire_aligned_pages(bytes));
        ASSERT_NE(aligned.back(), nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.back()) % bytes, 0u);
        std::memset(aligned.back(), n, bytes);
    }
    for (int n = 0; n < 20; ++n) {
        const auto* p = static_cast<unsigned char*>(aligned[static_cast<std::size_t>(n)]);
        EXPECT_TRUE(std::all_of(p, p + bytes, [n](unsigned char c) { return c == n; }));
        EXPECT_TRUE(weft::detail::release_pages(aligned[static_cast<std::size_t>(n)], bytes));
        EXPECT_TRUE(weft::detail::release_pages(between[static_cast<std::size_t>(n)], page));
    }
}

#if WEFT_LINUX  // where /proc says how many they are
std::size_t mapped_pages() {
    char text[64] = {};
    const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    EXPECT_GT(::read(fd, text, sizeof text - 1), 0);
    ::close(fd);
    return std::strtoul(text, nullptr, 10);
}

// So many and so large that the gaps of the process cannot hold them, and the mappings between them
// put the next out of alignment. Twice the size is less than a huge page, because the system itself
// aligns huge pages.
TEST(pages, leave_no_extra_pages_mapped_when_aligned) {
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "a sanitizer maps pages of its own";
    constexpr std::size_t count = 32;
    constexpr std::size_t bytes = 512 * 1024;
    const std::size_t page = page_bytes();
    const std::size_t between_bytes = bytes / 2 + page;
    void* kept[count] = {};
    void* between[count] = {};
    const std::size_t before = mapped_pages();
    for (std::size_t n = 0; n < count; ++n) {
        between[n] = weft::detail::try_acquire_pages(between_bytes);
        kept[n] = weft::detail::try_acquire_aligned_pages(bytes);
    }
    EXPECT_EQ(mapped_pages() - before, count * (between_bytes + bytes) / page);
    for (void* p : between) weft::detail::release_pages(p, between_bytes);
    for (void* p : kept) weft::detail::release_pages(p, bytes);
    EXPECT_EQ(mapped_pages(), before);
}
#endif

TEST(pages, are_null_with_errno_preserved_when_unavailable) {
    errno = 5;
    EXPECT_EQ(weft::detail::try_acquire_pages(SIZE_MAX / 4 * 3), nullptr);
    EXPECT_EQ(weft::detail::try_acquire_aligned_pages(SIZE_MAX / 2 + 1), nullptr);
    EXPECT_EQ(errno, 5);
}

}  // namespace
