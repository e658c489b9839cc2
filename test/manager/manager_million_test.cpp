// A million live tasks of one manager.

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <vector>

#include "test/support/slow.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"

using namespace std::chrono_literals;

namespace {

// Resident, in bytes.
std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t total = 0, resident = 0;
    statm >> total >> resident;
    return resident * 4096;
}

TEST(task_manager_million, tasks_can_be_live_and_are_resumed_by_id) {
    const std::size_t count = weft::testing::slow || WEFT_DEBUG ? 20'000 : 1'000'000;
    weft::loop l;
    weft::task_manager<> m({.on = l});
    std::vector<std::uint64_t> ids;
    ids.reserve(count);
    std::uint64_t sum = 0;
    const std::size_t before = resident_bytes();
    for (std::size_t i = 0; i < count; ++i)
        ids.push_back(*m.spawn(
            [&sum]() -> weft::task<> {
                sum += co_await weft::this_managed::async_suspend<std::uint64_t>();
            },
            {.timeout = 1h}));
    l.run_until_idle();
    EXPECT_EQ(m.live_count(), count);
    const std::size_t each = (resident_bytes() - before) / count;
    std::printf("%zu managed tasks live, each of %zu bytes\n", count, each);
    RecordProperty("bytes_per_task", static_cast<int>(each));
    for (std::size_t i = 0; i < count; i += 2) EXPECT_FALSE(m.resume(ids[i], std::uint64_t{i}));
    l.run_until_idle();
    EXPECT_EQ(m.live_count(), count / 2);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < count; i += 2) expected += i;
    EXPECT_EQ(sum, expected);
    m.stop_all(weft::stop_reason::shutdown, 0s);
    l.run_until_idle();
    EXPECT_EQ(m.live_count(), 0u);
    m.check();
}

}  // namespace
