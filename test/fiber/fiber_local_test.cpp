#include "weft/fiber/fiber_local.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::virtual_loop;
using ints = std::vector<int>;

// Notes its end, and whether that was in a fiber.
struct noted {
    ints* ends = nullptr;
    int mark = 0;
    ~noted() {
        if (ends != nullptr) ends->push_back(this_fiber::exists() ? mark : -mark);
    }
};

TEST(fiber_local, is_one_for_each_fiber) {
    virtual_loop l(1);
    fiber_local<int> n;
    ints seen;
    std::vector<fiber> all;
    for (int id = 1; id <= 3; ++id)
        all.emplace_back(
            [&, id] {
                EXPECT_FALSE(n.has_value());
                EXPECT_EQ(*n, 0);
                *n = id;
                this_fiber::yield();
                EXPECT_EQ(*n, id);
                EXPECT_TRUE(n.has_value());
            },
            fiber_options{.on = l});
    l.run();
    for (fiber& f : all) f.join();
}

TEST(fiber_local, of_one_that_uses_none_is_a_null_pointer) {
    virtual_loop l(1);
    fiber_local<int> n;
    fiber f(
        [&] {
            EXPECT_FALSE(n.has_value());
            EXPECT_EQ(detail::fiber_core::current()->locals, nullptr);
            *n = 1;
            EXPECT_NE(detail::fiber_core::current()->locals, nullptr);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_local, is_made_by_the_function_given_at_first_use) {
    virtual_loop l(1);
    int made = 0;
    fiber_local<std::string> s([&] {
        ++made;
        return std::string("hello");
    });
    fiber f(
        [&] {
            EXPECT_EQ(made, 0);
            EXPECT_EQ(s->size(), 5u);
            EXPECT_EQ(*s, "hello");
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(made, 1);
}

TEST(fiber_local, whose_function_throws_is_tried_again) {
    virtual_loop l(1);
    int tries = 0;
    fiber_local<int> n([&]() -> int {
        if (++tries == 1) throw std::runtime_error("no");
        return 5;
    });
    fiber f(
        [&] {
            EXPECT_THROW(*n, std::runtime_error);
            EXPECT_FALSE(n.has_value());
            EXPECT_EQ(*n, 5);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_local, is_destroyed_at_the_end_the_last_made_first) {
    virtual_loop l(1);
    ints ends;
    fiber_local<noted> a, b, c;
    fiber f(
        [&] {
            *b = noted{&ends, 2};
            a->ends = &ends, a->mark = 1;
            c->ends = &ends, c->mark = 3;
            ends.clear();
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(ends, (ints{3, 1, 2})) << "in the fiber";
}

TEST(fiber_local, is_destroyed_after_an_exception_and_after_a_stop) {
    virtual_loop l(1);
    ints ends;
    fiber_local<noted> n;
    fiber thrower(
        [&] {
            n->ends = &ends, n->mark = 1;
            throw 1;
        },
        {.on = l});
    l.run();
    EXPECT_EQ(ends, ints{1});
    EXPECT_THROW(thrower.join(), int);
    fiber sleeper(
        [&] {
            n->ends = &ends, n->mark = 2;
            this_fiber::sleep_for(1h);
        },
        {.on = l});
    fiber stopper([&] { sleeper.request_stop(); }, {.on = l});
    l.run();
    EXPECT_EQ(ends, (ints{1, 2}));
    sleeper.join();
    stopper.join();
}

TEST(fiber_local, is_destroyed_when_the_fiber_is_killed) {
    ints ends;
    fiber_local<noted> n;
    {
        loop l;
        fiber(
            [&] {
                n->ends = &ends, n->mark = 4;
                shield s;
                this_fiber::sleep_for(1h);
            },
            {.on = &l})
            .detach();
        l.run_until_idle();
    }
    EXPECT_EQ(ends, ints{4});
}

TEST(fiber_local, may_use_others_in_its_destructor) {
    virtual_loop l(1);
    static fiber_local<int> other;
    static int seen;
    seen = 0;
    struct uses_another {
        ~uses_another() { seen = ++*other; }
    };
    fiber_local<uses_another> n;
    fiber f([&] { static_cast<void>(*n); }, {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(seen, 1);
}

TEST(fiber_local, has_no_limit_to_how_many_there_are) {
    virtual_loop l(1);
    constexpr std::size_t count = 3000;
    std::vector<std::unique_ptr<fiber_local<std::size_t>>> all;
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(std::make_unique<fiber_local<std::size_t>>());
    fiber f(
        [&] {
            for (std::size_t i = 0; i < count; ++i) **all[i * 7 % count] = i * 7 % count;
            for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(**all[i], i);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_local, is_one_for_a_plain_thread_and_goes_with_it) {
    ints ends;
    fiber_local<noted> n;
    std::thread([&] {
        n->ends = &ends, n->mark = 7;
        EXPECT_TRUE(n.has_value());
    }).join();
    EXPECT_EQ(ends, ints{-7});
    EXPECT_FALSE(n.has_value());
}

TEST(fiber_local, is_never_taken_for_another_that_lay_at_the_same_address) {
    virtual_loop l(1);
    fiber f(
        [] {
            for (int i = 0; i < 10; ++i) {
                const fiber_local<int> n;
                EXPECT_FALSE(n.has_value());
                *n = 1;
            }
        },
        {.on = l});
    l.run();
    f.join();
}

}  // namespace
}  // namespace weft
