#include "weft/manager/detail/id_map.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "weft/manager/task_manager.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace {

using weft::manager_errc;
using weft::task_manager;
using weft::user_ids;
using weft::detail::id_map;

TEST(id_map, finds_an_id_until_it_is_erased) {
    using map = id_map<std::string>;
    map m;
    const map::entry first(m, "a"), next(m, "a");
    EXPECT_EQ(m.find("a"), 0u);
    EXPECT_TRUE(m.reserve(first));
    EXPECT_FALSE(m.reserve(next));
    EXPECT_EQ(m.find("a"), 0u) << "on its way";
    m.set(first, 7);
    EXPECT_EQ(m.find("a"), 7u);
    m.erase(first);
    EXPECT_EQ(m.find("a"), 0u);
    m.set(first, 8);
    EXPECT_EQ(m.find("a"), 0u) << "it has gone already";
    EXPECT_TRUE(m.reserve(next));
    m.set(next, 9);
    m.set(first, 8);
    m.erase(first);
    EXPECT_EQ(m.find("a"), 9u) << "it is another's by now";
}

// An id with a hash that runs something: before each lookup in the map.
struct told_id {
    int number;
    static inline std::function<void()> when_looked_up;
    bool operator==(const told_id&) const = default;
};

}  // namespace

template <>
struct std::hash<told_id> {
    std::size_t operator()(const told_id& i) const {
        if (told_id::when_looked_up) told_id::when_looked_up();
        return std::hash<int>()(i.number);
    }
};

namespace {

// The first task ends between its entry and the notification of the map, and another task takes its
// id.
TEST(id_map, finds_the_successor_of_a_task_that_ended_while_spawning) {
    weft::testing::virtual_loop l(1);
    task_manager<told_id, user_ids> m({.on = l.loop()});
    const told_id id{7};
    weft::managed_handle<told_id> successor;
    bool done = false;
    told_id::when_looked_up = [&] {
        if (done) return;
        weft::managed_handle<told_id> first;
        m.for_each([&](const auto& h) { first = h; });
        if (!first) return;  // not entered
        done = true;
        m.stop_all(weft::stop_reason::user, weft::duration::zero());
        m.restart();
        EXPECT_TRUE(first.over());
        successor = m.spawn_as(id, [] { weft::this_managed::suspend<int>(); }).value();
    };
    const auto first = m.spawn_as(id, [] {}, {.launch = weft::launch::deferred});
    told_id::when_looked_up = nullptr;
    ASSERT_TRUE(first && successor);
    l.loop().run_until_idle();
    EXPECT_EQ(m.find(id), successor);
    EXPECT_FALSE(m.resume(id, 1));
    l.run();
    EXPECT_TRUE(successor.over());
    EXPECT_FALSE(m.find(id));
}

TEST(id_map, supports_user_provided_ids) {
    weft::testing::virtual_loop l(1);
    task_manager<std::string, user_ids> m({.on = l.loop()});
    const auto waits = [] { return weft::this_managed::suspend<int>(); };
    auto h = m.spawn_as("login:7", waits, {.name = "login"});
    ASSERT_TRUE(h);
    EXPECT_EQ(h->id(), "login:7");
    const auto again = m.spawn_as("login:7", waits);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error(), manager_errc::id_in_use);
    EXPECT_EQ(m.find("login:7"), *h);
    EXPECT_FALSE(m.find("login:8"));
    l.loop().run_until_idle();
    EXPECT_FALSE(m.resume("login:7", 5));
    EXPECT_EQ(m.resume("login:8", 5), manager_errc::no_such_task);
    l.run();
    EXPECT_EQ(*h->join<int>(), 5);
    EXPECT_EQ(h->id(), "login:7") << "also when it is over";
    EXPECT_FALSE(m.find("login:7"));
    EXPECT_TRUE(m.spawn_as("login:7", [] {})) << "the id is free again";
    l.run();
}

struct names {
    int next = 0;
    std::string operator()() { return "task " + std::to_string(++next); }
};

TEST(id_map, supports_a_user_defined_id_allocator) {
    weft::testing::virtual_loop l(1);
    task_manager<std::string, names> m({.on = l.loop()});
    const auto first = m.spawn([] { weft::this_managed::suspend(); });
    const auto second = m.then(
        *first, [](const weft::managed_handle<std::string>& h) { EXPECT_EQ(h.id(), "task 1"); });
    EXPECT_EQ(*first, "task 1");
    EXPECT_EQ(*second, "task 2");
    l.loop().run_until_idle();
    EXPECT_FALSE(m.kill("task 1"));
    l.run();
    EXPECT_EQ(m.live_count(), 0u);
}

TEST(id_map, releases_the_id_of_a_refused_spawn) {
    weft::testing::virtual_loop l(1);
    task_manager<int, user_ids> m({.on = l.loop(), .max_live_count = 1});
    EXPECT_TRUE(m.spawn_as(1, [] {}));
    EXPECT_EQ(m.spawn_as(2, [] {}).error(), manager_errc::too_many_tasks);
    l.run();
    EXPECT_TRUE(m.spawn_as(2, [] {}));
    l.run();
}

}  // namespace
