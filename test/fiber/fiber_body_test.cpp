#include "weft/fiber/detail/fiber_body.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/sched/loop.hpp"

namespace weft::detail {
namespace {

std::size_t used() { return block_cache::stats().used_bytes; }

// The bytes of the blocks of a fiber that has begun and waits, for a function with these bytes.
template <std::size_t bytes>
std::size_t bytes_of_a_fiber() {
    loop l;
    fiber([] {}, {.on = l}).detach();
    l.run_until_idle();  // it has a queue now
    bool may_end = false;
    std::array<std::byte, bytes> captured{};
    const std::size_t before = used();
    fiber f(
        [&may_end, captured] {
            EXPECT_EQ(captured.back(), std::byte{});
            while (!may_end) this_fiber::yield();
        },
        {.on = l});
    l.run_once(l.now());
    const std::size_t of_one = used() - before;
    may_end = true;
    l.run();
    f.join();
    EXPECT_EQ(used(), before);
    return of_one;
}

TEST(fiber_body, takes_no_room_beside_a_fiber_that_has_begun) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    const std::size_t least = bytes_of_a_fiber<1>();
    EXPECT_EQ(bytes_of_a_fiber<40>(), least);
    EXPECT_EQ(bytes_of_a_fiber<500>(), least);
    EXPECT_EQ(bytes_of_a_fiber<5000>(), least);
}

TEST(fiber_body, of_one_word_is_in_the_coroutines_block) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    loop l;
    fiber([] {}, {.on = l}).detach();
    l.run_until_idle();
    bool may_end = false;
    const std::size_t before = used();
    fiber f(
        [&may_end] {
            while (!may_end) this_fiber::yield();
        },
        {.on = l});
    const std::size_t made = used() - before;
    l.run_once(l.now());
    EXPECT_EQ(used() - before, made) << "the first turn has released a block of the function's";
    EXPECT_EQ(made, bytes_of_a_fiber<40>());
    may_end = true;
    l.run();
    f.join();
}

// What was captured, of which one exists.
class counted_capture {
public:
    explicit counted_capture(int& living) : living_(&living) { ++*living_; }
    counted_capture(counted_capture&& other) noexcept : living_(other.living_) { ++*living_; }
    ~counted_capture() { --*living_; }

private:
    int* living_;
};

TEST(fiber_body, is_destroyed_with_a_fiber_that_never_begins) {
    int living = 0;
    const std::size_t before = used();
    {
        loop l;
        fiber f([c = counted_capture(living), word = &living] { static_cast<void>(word); },
                {.on = l, .launch = launch::deferred});
        EXPECT_EQ(living, 1);
    }
    EXPECT_EQ(living, 0);
    if (!WEFT_ASAN) {
        EXPECT_EQ(used(), before);
    }
}

TEST(fiber_body, is_destroyed_after_the_locals_of_its_fiber) {
    std::string order;
    struct at_end {
        std::string* order;
        char name;
        at_end(std::string& o, char n) : order(&o), name(n) {}
        at_end(at_end&& other) noexcept
            : order(std::exchange(other.order, nullptr)), name(other.name) {}
        ~at_end() {
            if (order != nullptr) *order += name;
        }
    };
    static fiber_local<std::unique_ptr<at_end>> local;
    loop l;
    fiber f([&, captured = at_end(order, 'c')] { *local = std::make_unique<at_end>(order, 'l'); },
            {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(order, "lc");
}

#if WEFT_EXCEPTIONS
struct throws_when_moved {
    int* left;
    explicit throws_when_moved(int& moves) : left(&moves) {}
    throws_when_moved(const throws_when_moved&) = delete;
    throws_when_moved(throws_when_moved&& other) : left(other.left) {
        if ((*left)-- == 0) throw std::runtime_error("moved");
    }
};

TEST(fiber_body, that_throws_when_it_moves_to_its_stack_ends_its_fiber_with_the_exception) {
    const std::size_t before = used();
    {
        loop l;
        int moves = 100;
        bool ran = false;
        fiber f([&ran, t = throws_when_moved(moves)] { ran = true; }, {.on = l});
        moves = 0;
        l.run();
        EXPECT_THROW(f.join(), std::runtime_error);
        EXPECT_FALSE(ran);
    }
    if (!WEFT_ASAN) {
        EXPECT_EQ(used(), before);
    }
}

TEST(fiber_body, that_throws_as_it_is_stored_leaves_nothing) {
    const std::size_t before = used();
    {
        loop l;
        int moves = 0;
        const auto make = [&] {
            fiber f([t = throws_when_moved(moves), word = &moves] { static_cast<void>(word); },
                    {.on = l});
        };
        EXPECT_THROW(make(), std::runtime_error);
        EXPECT_EQ(l.flow_count(), 0u);
    }
    if (!WEFT_ASAN) {
        EXPECT_EQ(used(), before);
    }
}
#endif

TEST(fiber_body, has_the_alignment_that_its_function_asks_for) {
    struct alignas(256) wide {
        std::byte b[256]{};
    };
    loop l;
    fiber f([w = wide()] { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&w) % 256, 0u); }, {.on = l});
    l.run();
    f.join();
}

}  // namespace
}  // namespace weft::detail
