#include "weft/base/pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace {

TEST(pages, are_zeroed_and_writable) {
    constexpr std::size_t bytes = 3 * 4096;
    auto* const p = static_cast<unsigned char*>(weft::detail::try_acquire_pages(bytes));
    ASSERT_NE(p, nullptr);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(p[i], 0);
    std::memset(p, 1, bytes);
    weft::detail::release_pages(p, bytes);
}

TEST(pages, are_gone_when_they_are_released) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const p = weft::detail::try_acquire_pages(page);
    ASSERT_NE(p, nullptr);
    unsigned char is_resident;
    EXPECT_EQ(::mincore(p, page, &is_resident), 0);
    weft::detail::release_pages(p, page);
    EXPECT_EQ(::mincore(p, page, &is_resident), -1);
    EXPECT_EQ(errno, ENOMEM);
}

TEST(pages, that_cannot_be_had_are_null_and_errno_is_kept) {
    errno = 5;
    EXPECT_EQ(weft::detail::try_acquire_pages(SIZE_MAX / 4), nullptr);
    EXPECT_EQ(errno, 5);
}

}  // namespace
