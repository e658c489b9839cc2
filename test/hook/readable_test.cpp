// Whether memory in a frame of the caller's can be read is known without a system call.

#include "weft/hook/detail/readable.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "weft/base/platform.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace {

using weft::hook::is_in_a_frame;
using weft::hook::is_readable;

struct two_pages {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::byte* const first = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    two_pages() { EXPECT_EQ(::mprotect(first + page, page, PROT_NONE), 0); }
    two_pages(const two_pages&) = delete;
    two_pages& operator=(const two_pages&) = delete;
    ~two_pages() { ::munmap(first, 2 * page); }
    const timespec* at(std::size_t offset) const noexcept {
        return reinterpret_cast<const timespec*>(first + offset);
    }
};

TEST(readable, covers_the_frames_of_the_running_coroutine) {
    bool is_own = false, is_whole = true, is_below = true, is_elsewhere = true;
    const timespec of_the_thread{};
    auto c = weft::coroutine<void()>([&] {
        timespec mine{};
        is_own = is_in_a_frame(&mine, sizeof mine);
        const weft::detail::control& self = *weft::detail::current();
        is_whole = is_in_a_frame(self.stack.top - 8, sizeof mine);
        is_below = is_in_a_frame(self.stack.limit, sizeof mine);
        is_elsewhere = is_in_a_frame(&of_the_thread, sizeof of_the_thread);
    });
    c.resume();
    EXPECT_TRUE(is_own);
    EXPECT_FALSE(is_whole) << "it ends beyond the stack";
    EXPECT_FALSE(is_below) << "no frame is there";
    EXPECT_FALSE(is_elsewhere);
    EXPECT_FALSE(is_in_a_frame(&of_the_thread, sizeof of_the_thread)) << "no coroutine runs";
}

TEST(readable, asks_the_system_about_other_memory) {
    const two_pages memory;
    const timespec here{};
    EXPECT_TRUE(is_readable(&here));
    EXPECT_TRUE(is_readable(memory.at(memory.page - sizeof(timespec))));
    EXPECT_FALSE(is_readable(memory.at(memory.page - 8))) << "its last half is not there";
    EXPECT_FALSE(is_readable(memory.at(memory.page)));
    EXPECT_FALSE(is_readable(nullptr));
}

}  // namespace
