#include "weft/manager/detail/task_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "test/support/manual_executor.hpp"
#include "test/support/slow.hpp"
#include "weft/base/errc.hpp"
#include "weft/manager/detail/manager_core.hpp"

namespace {

using weft::managed_status;
using weft::tick;
using weft::tick_never;
using weft::detail::live_count;
using weft::detail::managed_kind;
using weft::detail::managed_ref;
using weft::detail::managed_task;
using weft::detail::task_table;

// Tasks that are nothing but entries of a table.
class entries {
public:
    managed_task& make() { return all_.emplace_back(core_, flow_).task; }
    std::uint64_t insert(task_table& t, managed_task& task, tick deadline) {
        return t.insert(task, deadline, count).value();
    }

    live_count count;

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

TEST(task_table, finds_each_task_by_its_id_until_removed) {
    entries all;
    task_table t(4);
    std::vector<managed_task*> tasks;
    std::set<std::uint64_t> ids;
    for (int i = 0; i < 1000; ++i) {
        tasks.push_back(&all.make());
        const auto id = all.insert(t, *tasks.back(), tick_never);
        EXPECT_NE(id, 0u);
        EXPECT_TRUE(ids.insert(id).second);
    }
    t.check();
    for (managed_task* task : tasks) EXPECT_EQ(t.find(task->key).get(), task);
    auto found = t.ids();
    EXPECT_EQ(std::set<std::uint64_t>(found.begin(), found.end()), ids);
    EXPECT_EQ(t.count().living, 1000u);
    for (managed_task* task : tasks) {
        EXPECT_FALSE(t.remove(*task, managed_status::done)) << "no deadline";
        EXPECT_FALSE(t.find(task->key));
    }
    EXPECT_EQ(t.count().living, 0u);
    EXPECT_EQ(t.count().ended[static_cast<std::size_t>(managed_status::done)], 1000u);
    t.check();
}

TEST(task_table, never_repeats_an_id_in_the_same_slot) {
    entries all;
    managed_task& task = all.make();
    task_table t(1);
    std::set<std::uint64_t> ids;
    constexpr int rounds = 10'000;
    for (int i = 0; i < rounds; ++i) {
        const auto id = all.insert(t, task, tick_never);
        EXPECT_TRUE(ids.insert(id).second);
        EXPECT_EQ(id & ((1u << task_table::index_bits) - 1), 0u) << "one slot";
        static_cast<void>(t.remove(task, managed_status::done));
    }
    for (const auto id : ids) EXPECT_FALSE(t.find(id));
}

TEST(task_table, never_repeats_an_id_across_threads) {
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
            for (int n = 0; n < each; ++n) {
                given[i].push_back(all.insert(t, *tasks[i], static_cast<tick>(n)));
                static_cast<void>(t.find(given[(i + 1) % thread_count == 0 ? i : i].back()));
                static_cast<void>(t.remove(*tasks[i], managed_status::done));
            }
        });
    for (auto& thread : threads) thread.join();
    std::vector<std::uint64_t> ids;
    for (const auto& g : given) ids.insert(ids.end(), g.begin(), g.end());
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
    t.check();
}

TEST(task_table, finds_nothing_for_ids_never_issued) {
    entries all;
    task_table t(2);
    managed_task& task = all.make();
    const auto id = all.insert(t, task, tick_never);
    for (const std::uint64_t wrong : {std::uint64_t{0}, ~std::uint64_t{0}, id + 1, id ^ (1u << 20),
                                      id + (std::uint64_t{1} << task_table::index_bits)})
        EXPECT_FALSE(t.find(wrong));
    EXPECT_FALSE(t.set_deadline(0, 5));
    static_cast<void>(t.remove(task, managed_status::done));
}

TEST(task_table, returns_due_tasks_in_the_order_of_a_model) {
    entries all;
    task_table t(4);
    std::mt19937 random(7);
    std::map<std::uint64_t, tick> model;
    std::vector<managed_task*> tasks;
    for (int i = 0; i < 300; ++i) {
        tasks.push_back(&all.make());
        const tick d = random() % 100'000;
        model[all.insert(t, *tasks.back(), d)] = d;
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
    for (managed_task* task : tasks) static_cast<void>(t.remove(*task, managed_status::done));
    EXPECT_EQ(t.next(), tick_never);
}

TEST(task_table, refuses_a_task_admitted_before_it_was_closed) {
    entries all;
    task_table t(1);
    managed_task& task = all.make();
    all.count.close();
    EXPECT_EQ(t.insert(task, tick_never, all.count).error(), weft::errc::closed);
    EXPECT_EQ(t.count().living, 0u);
    all.count.restart();
    EXPECT_NE(all.insert(t, task, tick_never), 0u);
    EXPECT_FALSE(t.remove(task, managed_status::done));
}

TEST(task_table, visits_all_remaining_tasks_during_removals) {
    entries all;
    task_table t(2);
    std::set<managed_task*> kept, gone;
    for (int i = 0; i < 3000; ++i) {
        managed_task& task = all.make();
        all.insert(t, task, tick_never);
        (i % 3 == 0 ? kept : gone).insert(&task);
    }
    std::set<managed_task*> seen;
    t.for_each([&](managed_task& task) {
        seen.insert(&task);
        for (int n = 0; n < 2 && !gone.empty(); ++n) {
            static_cast<void>(t.remove(**gone.begin(), managed_status::done));
            gone.erase(gone.begin());
        }
    });
    for (managed_task* task : kept) EXPECT_TRUE(seen.contains(task));
    for (managed_task* task : kept) static_cast<void>(t.remove(*task, managed_status::done));
    for (managed_task* task : gone) static_cast<void>(t.remove(*task, managed_status::done));
    t.for_each([](managed_task&) { ADD_FAILURE() << "there is none"; });
}

}  // namespace
