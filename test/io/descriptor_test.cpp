#include "weft/io/detail/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

using weft::detail::descriptor;
using weft::detail::descriptor_ref;
using weft::detail::io_entry;

int any_number() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

descriptor_ref adopted(int number) {
    std::error_code error;
    const descriptor_ref r = descriptor_ref::adopt(number, 0, error);
    EXPECT_FALSE(error);
    return r;
}

TEST(descriptor, closes_its_fd_once) {
    const int n = any_number();
    const descriptor_ref r = adopted(n);
    EXPECT_TRUE(r.is_open());
    EXPECT_TRUE(r.close());
    EXPECT_FALSE(is_open(n));
    EXPECT_FALSE(r.is_open());
    const int again = any_number();
    ASSERT_EQ(again, n);
    EXPECT_FALSE(r.close());
    EXPECT_TRUE(is_open(again)) << "somebody else's";
    ::close(again);
}

TEST(descriptor, is_distinguished_from_a_former_generation) {
    const int n = any_number();
    const descriptor_ref first = adopted(n);
    first.close();
    ASSERT_EQ(any_number(), n);
    const descriptor second(adopted(n));
    EXPECT_NE(first.generation(), second.ref().generation());
    EXPECT_FALSE(first.entry().enter(first.generation()));
    EXPECT_TRUE(second.ref().entry().enter(second.ref().generation()));
    second.ref().entry().leave();
}

TEST(descriptor, is_closed_by_its_last_user) {
    const int n = any_number();
    const descriptor_ref r = adopted(n);
    ASSERT_TRUE(r.entry().enter(r.generation()));
    EXPECT_TRUE(r.close());
    EXPECT_TRUE(is_open(n)) << "a call may be under way";
    EXPECT_FALSE(r.entry().enter(r.generation()));
    EXPECT_TRUE(is_open(n));
    r.entry().leave();
    EXPECT_FALSE(is_open(n));
}

// What a sanitizer of threads would see: a call beside the closing of its descriptor.
TEST(descriptor, is_closed_after_the_calls_of_its_other_users) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const descriptor_ref r = adopted(ends[1]);
    io_entry& e = r.entry();
    ASSERT_TRUE(e.enter(r.generation()));
    constexpr auto unordered = std::memory_order_relaxed;  // the entry alone orders the two
    std::atomic<int> step{0};
    std::thread other([&] {
        EXPECT_TRUE(e.enter(r.generation()));
        step.store(1, unordered);
        while (step.load(unordered) != 2) std::this_thread::yield();
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
        e.leave();
        step.store(3, unordered);
    });
    while (step.load(unordered) != 1) std::this_thread::yield();
    EXPECT_TRUE(r.close());
    step.store(2, unordered);
    while (step.load(unordered) != 3) std::this_thread::yield();
    EXPECT_TRUE(is_open(ends[1]));
    e.leave();
    EXPECT_FALSE(is_open(ends[1]));
    other.join();
    ::close(ends[0]);
}

TEST(descriptor, can_be_released) {
    const int n = any_number();
    descriptor d(adopted(n));
    EXPECT_EQ(d.release(), n);
    EXPECT_FALSE(d);
    EXPECT_TRUE(is_open(n));
    EXPECT_FALSE(descriptor_ref::find(n));
    ::close(n);
}

TEST(descriptor, is_found_by_its_fd) {
    const int n = any_number();
    EXPECT_FALSE(descriptor_ref::find(n));
    descriptor d(adopted(n));
    EXPECT_EQ(descriptor_ref::find(n).generation(), d.ref().generation());
    d.close();
    EXPECT_FALSE(descriptor_ref::find(n));
    EXPECT_FALSE(descriptor_ref::find(-1));
    EXPECT_FALSE(descriptor_ref::find(1 << 30));
}

TEST(descriptor, can_have_the_highest_fd_allowed) {
    std::error_code error;
    EXPECT_FALSE(descriptor_ref::adopt(-1, 0, error));
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
    ::rlimit limit;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int high = static_cast<int>(limit.rlim_cur) - 1;
    const int low = any_number();
    ASSERT_EQ(::dup2(low, high), high);
    ::close(low);
    EXPECT_EQ(descriptor(adopted(high)).number(), high);
    EXPECT_FALSE(is_open(high));
}

TEST(descriptor, can_be_moved) {
    const int n = any_number();
    descriptor a(adopted(n));
    descriptor b(std::move(a));
    EXPECT_FALSE(a);
    descriptor& same = b;
    b = std::move(same);
    EXPECT_TRUE(is_open(n));
    b = descriptor();
    EXPECT_FALSE(is_open(n));
}

// Calls, closes and new openings of one descriptor on two threads: no call reaches the file of
// another generation than its own. Even generations are of /dev/null, odd ones of /dev/zero.
TEST(descriptor, makes_no_call_on_the_file_of_another_generation) {
    struct ::stat null;
    ASSERT_EQ(::stat("/dev/null", &null), 0);
    const int number = any_number();
    io_entry& e = adopted(number).entry();
    descriptor_ref::find(number).close();
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> present{0};
    std::atomic<std::uint64_t> calls{0};
    std::thread caller([&] {
        while (!over.load()) {
            const std::uint64_t g = present.load();
            if (!e.enter(g)) continue;
            struct ::stat s;
            EXPECT_EQ(::fstat(number, &s), 0);
            EXPECT_EQ(s.st_rdev == null.st_rdev, g % 2 == 0);
            e.leave();
            ++calls;
        }
    });
    std::uint64_t next = io_entry::generation_of(e.life.load()) + 1;
    const auto end = weft::steady_now() + std::chrono::seconds(5);
    for (int opened = 0; opened < 2000 || (calls == 0 && weft::steady_now() < end);) {
        const int n = ::open(next % 2 == 0 ? "/dev/null" : "/dev/zero", O_RDWR | O_CLOEXEC);
        if (n != number) {  // a call is under way on it still
            ::close(n);
            std::this_thread::yield();
            continue;
        }
        const descriptor_ref r = adopted(n);
        ASSERT_EQ(r.generation(), next++);
        present = r.generation();
        if (++opened % 4 == 0) std::this_thread::yield();
        r.close();
    }
    over = true;
    caller.join();
    EXPECT_GT(calls, 0u);
}

}  // namespace
