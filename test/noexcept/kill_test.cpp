// The kill where weft is built without exceptions: an empty stack of clean-ups, or a refusal by
// name.
#include "weft/coroutine/detail/kill.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "test/noexcept/with_exceptions.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"

namespace weft {
namespace {

static_assert(!WEFT_EXCEPTIONS, "this is the test of a build without them");

// One stack, and whether it is out.
struct counting_stacks {
    alignas(64) std::byte memory[64 * 1024];
    int out = 0;

    stack acquire() noexcept { return ++out, stack{memory, memory + sizeof memory}; }
    void release(stack) noexcept { --out; }
    std::size_t stack_bytes() const noexcept { return sizeof memory; }
};

[[gnu::noinline]] void descend(int depth) {
    if (depth == 0)
        this_coroutine::yield();
    else
        descend(depth - 1);
    asm volatile("");  // not a tail call
}

TEST(kill_without_exceptions, of_frames_without_cleanup_releases_the_stack) {
    counting_stacks stacks;
    coroutine<> c([] { descend(10); }, {.stack = stacks});
    c.resume();
    EXPECT_EQ(stacks.out, 1);
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(c.state(), coroutine_state::killed);
    EXPECT_EQ(stacks.out, 0);
    EXPECT_FALSE(c.kill());
}

TEST(kill_without_exceptions, passes_frames_without_cleanup_built_with_exceptions) {
    coroutine<> c([] { yield_with_nothing_to_clean_up(); });
    c.resume();
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(c.state(), coroutine_state::killed);
}

TEST(kill_without_exceptions, works_on_a_shared_stack) {
    shared_stack_group group;
    coroutine<> a([] { descend(3); }, {.shared = &group});
    coroutine<> b([] { descend(5); }, {.shared = &group});
    a.resume();
    b.resume();
    EXPECT_TRUE(a.kill());
    b.resume();
    EXPECT_TRUE(b.done());
}

TEST(kill_without_exceptions, of_an_unstarted_coroutine_destroys_its_captures) {
    int destroyed = 0;
    struct guest {
        int* destroyed;
        explicit guest(int* d) : destroyed(d) {}
        guest(guest&& other) noexcept : destroyed(std::exchange(other.destroyed, nullptr)) {}
        ~guest() {
            if (destroyed != nullptr) ++*destroyed;
        }
    };
    coroutine<> c([g = guest(&destroyed)] {});
    EXPECT_TRUE(c.kill());
    EXPECT_EQ(destroyed, 1);
}

// The refusal names the obstacle, its coroutine, and the source location of the kill.
TEST(kill_without_exceptions_death, of_a_frame_with_cleanup_is_refused_by_name) {
    auto die = [] {
        coroutine<> c([] { yield_with_something_to_clean_up(); }, {.name = "login"});
        c.resume();
        c.kill();
    };
    EXPECT_DEATH(
        die(),
        "^weft: kill of a coroutine is refused: a function with something to clean up is in "
        "the way, and weft is built without exceptions at .*: coroutine [0-9]+ \"login\" "
        "\\([^ ]*test/noexcept/kill_test.cpp:[0-9]+\\)\n");
}

TEST(resume_without_exceptions_death, of_a_coroutine_without_an_available_stack) {
    struct {
        stack acquire() noexcept { return {}; }
        void release(stack) noexcept {}
        std::size_t stack_bytes() const noexcept { return 0; }
    } none;
    coroutine<> c([] {}, {.name = "login", .stack = none});
    EXPECT_DEATH(c.resume(), "weft: no stack for a coroutine: coroutine [0-9]+ \"login\"");
}

}  // namespace
}  // namespace weft
