#include "weft/wait/detail/waiter_state.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/slow.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {
namespace {

using testing::slow;

TEST(waiter_state, the_first_claim_wins_and_stays) {
    for (wait_status first : {wait_status::woken, wait_status::timed_out, wait_status::stopped})
        for (wait_status second :
             {wait_status::woken, wait_status::timed_out, wait_status::stopped}) {
            waiter_state s;
            EXPECT_TRUE(s.is_pending());
            EXPECT_TRUE(s.claim(first));
            EXPECT_FALSE(s.is_pending());
            EXPECT_FALSE(s.claim(second));
            EXPECT_EQ(s.status(), first);
            s.rearm();
            EXPECT_TRUE(s.is_pending());
            EXPECT_TRUE(s.claim(second));
            EXPECT_EQ(s.status(), second);
        }
}

TEST(waiter_state, is_one_byte) { static_assert(sizeof(waiter_state) == 1); }

// Each state is claimed by two threads at once.
TEST(waiter_state, exactly_one_of_two_threads_wins_each_race) {
    const std::size_t races = slow ? 20'000 : 100'000;
    std::vector<waiter_state> states(races);
    std::atomic<int> ready{0};
    const auto run = [&](wait_status how, std::size_t& won) {
        ++ready;
        while (ready != 2) std::this_thread::yield();
        for (waiter_state& s : states) won += s.claim(how);
    };
    std::size_t won = 0;
    std::size_t timed_out = 0;
    std::thread other([&] { run(wait_status::timed_out, timed_out); });
    run(wait_status::woken, won);
    other.join();
    EXPECT_EQ(won + timed_out, races);
    std::size_t seen = 0;
    for (const waiter_state& s : states) seen += s.status() == wait_status::woken;
    EXPECT_EQ(seen, won);
}

}  // namespace
}  // namespace weft::detail
