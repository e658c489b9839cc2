#include "weft/sched/virtual_loop.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/timer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;
using ints = std::vector<int>;

struct outcome {
    ints order;
    std::uint64_t hash;
    auto operator<=>(const outcome&) const = default;
};

// Eight fibers that yield and sleep; the last of them are detached, and gone after their turn.
outcome run_under(std::uint64_t seed) {
    virtual_loop l(seed);
    ints order;
    std::vector<fiber> all;
    for (int id = 0; id < 8; ++id) {
        all.emplace_back(
            [&order, id] {
                order.push_back(id);
                this_fiber::yield();
                order.push_back(id);
                this_fiber::sleep_for(std::chrono::milliseconds(id % 3));
                order.push_back(id);
            },
            fiber_options{.on = l});
        if (id >= 4) all.back().detach();
    }
    l.run();
    for (fiber& f : all)
        if (f.joinable()) f.join();
    return {order, l.trace_hash()};
}

TEST(virtual_loop, gives_the_same_run_for_the_same_seed) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(run_under(seed), run_under(seed));
}

TEST(virtual_loop, gives_another_order_and_another_hash_for_another_seed) {
    std::set<ints> orders;
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const outcome o = run_under(seed);
        orders.insert(o.order);
        hashes.insert(o.hash);
    }
    EXPECT_EQ(orders.size(), 20u);
    EXPECT_EQ(hashes.size(), 20u);
}

TEST(virtual_loop, produces_every_order_of_three_fibers) {
    std::set<ints> orders;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        virtual_loop l(seed);
        ints order;
        std::vector<fiber> all;
        for (int id = 0; id < 3; ++id)
            all.emplace_back([&order, id] { order.push_back(id); }, fiber_options{.on = l});
        l.run();
        for (fiber& f : all) f.join();
        orders.insert(order);
    }
    EXPECT_EQ(orders.size(), 6u);
}

TEST(virtual_loop, has_one_trace_hash_for_each_start_order) {
    std::set<ints> orders;
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        virtual_loop l(seed);
        ints order;
        for (int id = 0; id < 3; ++id)
            fiber([&order, id] { order.push_back(id); }, {.on = l}).detach();
        l.run();
        orders.insert(order);
        hashes.insert(l.trace_hash());
    }
    EXPECT_EQ(hashes.size(), orders.size());
}

TEST(virtual_loop, hashes_an_unstarted_flow_unlike_a_posted_function) {
    std::set<ints> orders;
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        virtual_loop l(seed);
        ints order;
        fiber([&order] { order.push_back(1); }, {.on = l}).detach();
        l.loop().post([&order] { order.push_back(2); });
        l.run();
        orders.insert(order);
        hashes.insert(l.trace_hash());
    }
    EXPECT_EQ(orders.size(), 2u);
    EXPECT_EQ(hashes.size(), 2u);
}

TEST(virtual_loop, hashes_when_a_timer_fired) {
    std::set<std::uint64_t> hashes;
    for (int round = 0; round < 2; ++round)
        for (const duration d : {duration(1ms), duration(2ms)}) {
            virtual_loop l(1);
            timer t(l.loop(), d, [] {});
            l.run();
            hashes.insert(l.trace_hash());
        }
    EXPECT_EQ(hashes.size(), 2u);
}

TEST(virtual_loop, takes_posts_of_other_threads) {
    constexpr int total = 1000;
    virtual_loop l(1);
    int came = 0;
    std::thread other([&] {
        for (int i = 0; i < total; ++i) l.loop().post([&] { ++came; });
    });
    while (came != total) l.loop().run_once(l.now() + 1ms);
    other.join();
}

TEST(virtual_loop, jumps_to_the_next_deadline_when_nothing_is_ready) {
    virtual_loop l(1);
    const time_point begin = l.now();
    const time_point real = steady_now();
    fiber f([] { this_fiber::sleep_for(24h * 365); }, {.on = l});
    l.run();
    EXPECT_EQ(l.now() - begin, 24h * 365);
    EXPECT_LT(steady_now() - real, 1h);
    f.join();
}

TEST(virtual_loop, lets_no_time_pass_while_something_is_ready) {
    virtual_loop l(3);
    const time_point begin = l.now();
    fiber sleeper([] { this_fiber::sleep_for(1ms); }, {.on = l});
    time_point seen{};
    fiber busy(
        [&] {
            for (int i = 0; i < 1000; ++i) this_fiber::yield();
            seen = l.now();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(seen, begin);
    sleeper.join();
    busy.join();
}

TEST(virtual_loop_death, prints_its_own_seed_when_its_inner_loop_is_run) {
    const auto deadlocked = [] {
        virtual_loop l(42);
        virtual_loop other(43);
        fiber a;
        fiber b([&] { a.join(); }, {.on = l});
        a = fiber([&] { b.join(); }, {.on = l});
        other.run();
        l.loop().run();
    };
    EXPECT_DEATH(deadlocked(), "weft: deadlock under WEFT_SEED=42;");
}

TEST(virtual_loop_death, prints_its_seed_and_the_waiting_fibers_in_a_deadlock) {
    const auto deadlocked = [] {
        virtual_loop l(42);
        fiber a, b;
        a = fiber([&] { b.join(); }, {.name = "fork", .on = l});
        b = fiber([&] { a.join(); }, {.name = "spoon", .on = l});
        l.run();
    };
    EXPECT_DEATH(deadlocked(),
                 "weft: deadlock under WEFT_SEED=42; these wait:\n"
                 "  fiber [0-9]+ \"[a-z]+\" waits for the end of a fiber: fiber [0-9]+ \"[a-z]+\"\n"
                 "  fiber [0-9]+ \"[a-z]+\" waits for the end of a fiber: fiber [0-9]+ \"[a-z]+\"");
}

// Takes WEFT_SEED away for a case, and puts it back.
struct without_seed : ::testing::Test {
    without_seed() {
        if (const char* text = std::getenv("WEFT_SEED")) before = text;
        ::unsetenv("WEFT_SEED");
    }
    ~without_seed() override {
        if (!before.empty()) ::setenv("WEFT_SEED", before.c_str(), 1);
    }
    std::string before;
};
using explore_test = without_seed;
using seeds = std::vector<std::uint64_t>;

TEST_F(explore_test, runs_under_as_many_seeds_as_asked) {
    seeds seen;
    EXPECT_TRUE(explore(5, [&](std::uint64_t s) {
        seen.push_back(s);
        return true;
    }));
    EXPECT_EQ(seen, (seeds{1, 2, 3, 4, 5}));
}

TEST_F(explore_test, prints_the_first_seed_that_fails) {
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(explore(5, [](std::uint64_t s) { return s != 3; }));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "weft: fails under WEFT_SEED=3\n");
}

TEST_F(explore_test, treats_an_exception_as_a_failure) {
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(explore(5, [](std::uint64_t s) {
        if (s == 2) throw 1;
        return true;
    }));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "weft: fails under WEFT_SEED=2\n");
}

TEST_F(explore_test, prints_what_was_thrown) {
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(explore(1, [](std::uint64_t) -> bool { throw std::runtime_error("no route"); }));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "weft: fails under WEFT_SEED=1: no route\n");
}

TEST_F(explore_test, replays_one_seed_alone) {
    ::setenv("WEFT_SEED", "77", 1);
    seeds seen;
    EXPECT_TRUE(explore(5, [&](std::uint64_t s) {
        seen.push_back(s);
        return true;
    }));
    EXPECT_EQ(seen, seeds{77});
    EXPECT_EQ(virtual_loop().seed(), 77u);
    ::unsetenv("WEFT_SEED");
    EXPECT_EQ(virtual_loop().seed(), 1u);
}

}  // namespace
}  // namespace weft::testing
