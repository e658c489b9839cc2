// Ids of a manager's table, assigned to eight threads: no two are ever alike, whichever slots are
// reused, and the id of a task that has ended finds nothing. An operation is one id.
//
// Each thread stores the ids that it was assigned; a thread's shard is its own or shared with
// others, and its ids of one slot rise, so that all are compared by sorting them once a round.
// Between rounds the highest of each slot is stored, and the next round's ids of that slot are
// above it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "test/storm/storm.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"

namespace {

using weft::testing::storm::random;

constexpr std::size_t thread_count = 8;
constexpr std::size_t each = 25'000;
constexpr std::uint64_t slot_mask = (std::uint64_t{1} << weft::detail::task_table::index_bits) - 1;

// The objects that exist as long as the program, so that the ids of all rounds are compared, not
// only those of one.
struct all_rounds {
    weft::loop loop;
    weft::task_manager<> m{{.on = loop}};
    std::unordered_map<std::uint64_t, std::uint64_t> highest;  // of each slot
};

std::uint64_t storm_ids(random& x) {
    static all_rounds all;
    std::array<std::vector<std::uint64_t>, thread_count> given;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < thread_count; ++t)
        threads.emplace_back([&mine = given[t], seed = x.next()] {
            random r(seed);
            mine.reserve(each);
            std::uint64_t last = 0;
            while (mine.size() < each) {
                // Lazy ones, which are dropped where they are killed. Some at a time.
                const std::size_t from = mine.size();
                const std::size_t count = std::min(each - from, 1 + r.below(8));
                for (std::size_t n = 0; n < count; ++n)
                    mine.push_back(all.m.spawn([] {}, {.launch = weft::launch::deferred}).value());
                for (std::size_t n = from; n < mine.size(); ++n) STORM_CHECK(!all.m.kill(mine[n]));
                STORM_CHECK(last == 0 || !all.m.find(last));
                last = mine.back();
            }
        });
    for (auto& t : threads) t.join();
    std::vector<std::uint64_t> ids;
    ids.reserve(thread_count * each);
    for (const auto& g : given) ids.insert(ids.end(), g.begin(), g.end());
    std::sort(ids.begin(), ids.end(), [](std::uint64_t a, std::uint64_t b) {
        return (a & slot_mask) != (b & slot_mask) ? (a & slot_mask) < (b & slot_mask) : a < b;
    });
    for (const std::uint64_t id : ids) {
        std::uint64_t& top = all.highest[id & slot_mask];
        STORM_CHECK(id != 0 && id > top);
        top = id;
    }
    STORM_CHECK(all.m.live_count() == 0);
    all.m.check();
    return ids.size();
}

}  // namespace

int main(int argc, char** argv) { return weft::testing::storm::run(argc, argv, "ids", storm_ids); }
