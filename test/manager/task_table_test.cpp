#include "weft/manager/task_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "test/support/manual_executor.hpp"
#include "test/support/slow.hpp"
#include "weft/manager/manager_core.hpp"

namespace {

using weft::managed_status;
using weft::tick;
using weft::tick_never;
using weft::detail::managed_kind;
using weft::detail::managed_ref;
using weft::detail::managed_task;
using weft::detail::task_table;

// Tasks that are nothing but entries of a table.
class entries {
public:
    managed_task& make() { return all_.emplace_back(core_, flow_).task; }

private:
    struct entry {
        managed_task task;
        entry(weft::detail::manager_core& c, weft::flow& f) : task(kind, f, c, true) {}
    };
    static void nothing(managed_task&) noexcept {}
    static constexpr managed_kind kind = {"entry", nullptr, nothing, nullptr,
                                          nullptr, nothing, nullptr, nullptr};

    weft::testing::manual_executor executor_;
    weft::testing::coroutine_flow flow_{executor_};
    weft::detail::manager_core core_{{}};
    std::deque<entry> all_;
};

TEST(task_table, finds_each_by_its_id_until_it_is_removed) {
    entries all;
    task_table t(4);
    task_table::watch w;
    std::vector<managed_task*> tasks;
    std::set<std::uint64_t> ids;
    for (int i = 0; i < 1000; ++i) {
        tasks.push_back(&all.make());
        const auto id = t.insert(*tasks.back(), tick_never);
        EXPECT_NE(id, 0u);
        EXPECT_TRUE(ids.insert(id).second);
    }
    t.check();
    for (managed_task* task : tasks) EXPECT_EQ(t.find(task->key).get(), task);
    auto found = t.ids();
    EXPECT_EQ(std::set<std::uint64_t>(found.begin(), found.end()), ids);
    EXPECT_EQ(t.count().living, 1000u);
    for (managed_task* task : tasks) {
        EXPECT_FALSE(t.remove(*task, managed_status::done, w)) << "nobody waits";
        EXPECT_FALSE(t.find(task->key));
    }
    EXPECT_TRUE(t.is_empty());
    EXPECT_EQ(t.count().ended[static_cast<std::size_t>(managed_status::done)], 1000u);
    t.check();
}

TEST(task_table, gives_no_id_twice_though_it_uses_the_same_slot) {
    entries all;
    managed_task& task = all.make();
    task_table t(1);
    task_table::watch w;
    std::set<std::uint64_t> ids;
    constexpr int rounds = 10'000;
    for (int i = 0; i < rounds; ++i) {
        const auto id = t.insert(task, tick_never);
        EXPECT_TRUE(ids.insert(id).second);
        EXPECT_EQ(id & ((1u << task_table::index_bits) - 1), 0u) << "one slot";
        static_cast<void>(t.remove(task, managed_status::done, w));
    }
    for (const auto id : ids) EXPECT_FALSE(t.find(id));
}

TEST(task_table, gives_no_id_twice_to_threads) {
    constexpr int thread_count = 8;
    const int each = weft::testing::slow ? 2'000 : 50'000;
    entries all;
    std::array<managed_task*, thread_count> tasks;
    for (auto& t : tasks) t = &all.make();
    task_table t(8);
    std::array<std::vector<std::uint64_t>, thread_count> given;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < thread_count; ++i)
        threads.emplace_back([&, i] {
            task_table::watch w;
            for (int n = 0; n < each; ++n) {
                given[i].push_back(t.insert(*tasks[i], static_cast<tick>(n)));
                static_cast<void>(t.find(given[(i + 1) % thread_count == 0 ? i : i].back()));
                static_cast<void>(t.remove(*tasks[i], managed_status::done, w));
            }
        });
    for (auto& thread : threads) thread.join();
    std::vector<std::uint64_t> ids;
    for (const auto& g : given) ids.insert(ids.end(), g.begin(), g.end());
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
    t.check();
}

TEST(task_table, finds_nothing_for_ids_that_were_never_given) {
    entries all;
    task_table t(2);
    task_table::watch w;
    managed_task& task = all.make();
    const auto id = t.insert(task, tick_never);
    for (const std::uint64_t wrong : {std::uint64_t{0}, ~std::uint64_t{0}, id + 1, id ^ (1u << 20),
                                      id + (std::uint64_t{1} << task_table::index_bits)})
        EXPECT_FALSE(t.find(wrong));
    EXPECT_FALSE(t.set_deadline(0, 5));
    static_cast<void>(t.remove(task, managed_status::done, w));
}

TEST(task_table, tells_who_waits_that_a_shard_is_empty) {
    entries all;
    task_table t(1);
    task_table::watch w;
    managed_task &a = all.make(), &b = all.make();
    static_cast<void>(t.insert(a, tick_never));
    static_cast<void>(t.insert(b, tick_never));
    w.awaited = true;
    EXPECT_FALSE(t.remove(a, managed_status::done, w));
    EXPECT_EQ(w.telling, 0u);
    EXPECT_TRUE(t.remove(b, managed_status::done, w));
    EXPECT_EQ(w.telling, 1u);
}

// Against a map: what is due, in which order, with deadlines that are moved and taken back.
TEST(task_table, gives_the_due_in_their_order_as_a_model_does) {
    entries all;
    task_table t(4);
    task_table::watch w;
    std::mt19937 random(7);
    std::map<std::uint64_t, tick> model;
    std::vector<managed_task*> tasks;
    for (int i = 0; i < 300; ++i) {
        tasks.push_back(&all.make());
        const tick d = random() % 100'000;
        model[t.insert(*tasks.back(), d)] = d;
    }
    tick now = 0;
    for (int step = 0; step < 3'000; ++step) {
        managed_task& some = *tasks[random() % tasks.size()];
        const tick d = now + random() % 50'000;
        if (step % 5 == 0) {
            EXPECT_TRUE(t.set_deadline(some.key, tick_never));
            model.erase(some.key);
        } else if (step % 5 == 1) {
            EXPECT_TRUE(t.set_deadline(some.key, d, true));
            const auto at = model.try_emplace(some.key, d).first;
            at->second = std::min(at->second, d);
        } else {
            EXPECT_TRUE(t.set_deadline(some.key, d));
            model[some.key] = d;
        }
        now += random() % 1'000;
        managed_ref due[8];
        for (tick last = 0;;) {
            const std::size_t n = t.take_due(now, due, std::size(due));
            if (n == 0) break;
            for (std::size_t i = 0; i < n; ++i) {
                const auto at = model.find(due[i]->key);
                ASSERT_NE(at, model.end());
                EXPECT_LE(at->second, now);
                EXPECT_GE(at->second, last) << "in order";
                last = at->second;
                model.erase(at);
                due[i] = managed_ref();
            }
        }
        for (const auto& [id, deadline] : model) EXPECT_GT(deadline, now);
        EXPECT_EQ(t.count().deadlines, model.size());
        if (step % 500 == 0) t.check();
    }
    for (managed_task* task : tasks) static_cast<void>(t.remove(*task, managed_status::done, w));
    EXPECT_EQ(t.next(), tick_never);
}

}  // namespace
