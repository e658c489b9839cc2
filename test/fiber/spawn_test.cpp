#include "weft/fiber/spawn.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "test/support/loop_thread.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::loop_thread;
using testing::virtual_loop;

// Runs f in a fiber of a virtual loop.
template <class F>
void in_fiber(F f) {
    virtual_loop l(1);
    fiber outer(std::move(f), {.on = l});
    l.run();
    outer.join();
}

TEST(spawn, delivers_the_value_that_the_function_returns) {
    in_fiber([] {
        join_handle<int> h = spawn([] {
            this_fiber::yield();
            return 7;
        });
        EXPECT_EQ(h.get(), 7);
        EXPECT_FALSE(h.joinable());
    });
}

TEST(spawn, of_void_waits_for_the_end) {
    in_fiber([] {
        bool ran = false;
        auto h = spawn([&] { ran = true; });
        static_assert(std::is_same_v<decltype(h), join_handle<void>>);
        h.get();
        EXPECT_TRUE(ran);
    });
}

TEST(spawn, of_a_reference_delivers_the_same_object) {
    in_fiber([] {
        int n = 0;
        auto h = spawn([&]() -> int& { return n; });
        EXPECT_EQ(&h.get(), &n);
    });
}

TEST(spawn, delivers_a_move_only_value) {
    in_fiber([] {
        auto p = std::make_unique<int>(5);
        auto h = spawn([p = std::move(p)]() mutable { return std::move(p); });
        EXPECT_EQ(*h.get(), 5);
    });
}

TEST(spawn, delivers_a_value_without_a_default_constructor) {
    struct odd {
        explicit odd(int m) : n(m) {}
        odd(odd&&) = default;
        odd& operator=(odd&&) = delete;
        int n;
    };
    in_fiber([] { EXPECT_EQ(spawn([] { return odd(3); }).get().n, 3); });
}

TEST(spawn, accepts_a_function_callable_only_once) {
    struct once {
        std::unique_ptr<int> p;
        int operator()() && { return *p; }
    };
    in_fiber([] { EXPECT_EQ(spawn(once{std::make_unique<int>(4)}).get(), 4); });
}

TEST(spawn, rethrows_what_the_function_throws) {
    in_fiber([] {
        auto h = spawn([]() -> int { throw std::out_of_range("far"); });
        EXPECT_THROW(h.get(), std::out_of_range);
        EXPECT_FALSE(h.joinable());
    });
}

TEST(spawn, throws_stopped_with_the_reason_of_the_stop) {
    in_fiber([] {
        auto h = spawn([] {
            this_fiber::sleep_for(1h);
            return 1;
        });
        h.request_stop(stop_reason::sibling_failed);
        try {
            h.get();
            ADD_FAILURE();
        } catch (const stopped& s) {
            EXPECT_EQ(s.reason, stop_reason::sibling_failed);
        }
    });
}

TEST(spawn, can_be_awaited_as_an_operation) {
    in_fiber([] {
        auto h = spawn([] {
            this_fiber::sleep_for(1ms);
            return 9;
        });
        EXPECT_EQ(await(h.async_get()), 9);
        fiber f([] {});
        EXPECT_FALSE(await(f.async_join()).is_stopped());
        EXPECT_FALSE(f.joinable());
    });
}

TEST(spawn, delivers_its_value_to_a_thread) {
    loop_thread there;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(spawn([i] { return i; }, {.on = there}).get(), i);
}

TEST(spawn, delivers_its_value_to_a_fiber_of_another_thread) {
    loop_thread a;
    loop_thread b;
    auto sum = spawn(
        [&] {
            int n = 0;
            for (int i = 0; i < 100; ++i) n += spawn([i] { return i; }, {.on = b}).get();
            return n;
        },
        {.on = a});
    EXPECT_EQ(sum.get(), 4950);
}

TEST(spawn, destroyed_handle_stops_joins_and_destroys_the_value) {
    auto kept = std::make_shared<int>();
    in_fiber([&] {
        {
            auto h = spawn([kept] { return kept; });
            while (!h.done()) this_fiber::yield();
            EXPECT_GT(kept.use_count(), 1);
        }
        EXPECT_EQ(kept.use_count(), 1);
    });
}

}  // namespace
}  // namespace weft
