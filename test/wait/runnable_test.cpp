#include "weft/wait/runnable.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "test/support/manual_executor.hpp"

namespace weft {
namespace {

using testing::plain_coroutine;

// Not inlined: Clang would put the frame in the caller's, which has no such words.
WEFT_NOINLINE plain_coroutine add_up(int& resumed, int& destroyed) {
    struct at_end {
        int& n;
        ~at_end() { ++n; }
    } const counts{destroyed};
    for (;;) {
        ++resumed;
        co_await std::suspend_always();
    }
}

// Every kind of runnable except a C++20 coroutine relies on this: the compiler's frame starts with
// these two words, and they are called with its address.
TEST(runnable, a_coroutine_frame_begins_with_resume_and_destroy) {
    int resumed = 0;
    int destroyed = 0;
    plain_coroutine c = add_up(resumed, destroyed);
    auto* f = static_cast<detail::frame*>(c.release().address());
    f->resume(f);
    EXPECT_EQ(resumed, 1);
    f->resume(f);
    EXPECT_EQ(resumed, 2);
    EXPECT_EQ(destroyed, 0);
    f->destroy(f);
    EXPECT_EQ(destroyed, 1);
}

TEST(runnable, a_frame_of_two_pointers_works_as_a_coroutine) {
    struct counting_frame : detail::frame {
        int resumed = 0;
        int destroyed = 0;
        counting_frame()
            : frame{[](frame* f) { ++static_cast<counting_frame*>(f)->resumed; },
                    [](frame* f) { ++static_cast<counting_frame*>(f)->destroyed; }} {}
    } c;
    static_assert(offsetof(detail::frame, resume) == 0);
    static_assert(offsetof(detail::frame, destroy) == sizeof(void*));
    const std::coroutine_handle<> h = c.handle();
    EXPECT_EQ(h.address(), &c);
    h.resume();
    h();
    EXPECT_EQ(c.resumed, 2);
    EXPECT_FALSE(h.done());
    h.destroy();
    EXPECT_EQ(c.destroyed, 1);
}

TEST(runnable, starts_in_no_queue_and_without_a_flow) {
    const runnable r;
    EXPECT_FALSE(r.is_linked());
    EXPECT_EQ(r.of, nullptr);
    EXPECT_EQ(r.handle, nullptr);
}

}  // namespace
}  // namespace weft
