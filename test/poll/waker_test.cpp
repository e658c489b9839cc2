#include "weft/poll/waker.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "weft/poll/poll_future.hpp"

namespace {

// A source that knows neither what it wakes nor why.
struct counts_its_looks {
    std::vector<weft::waker*>& interested;
    int looks = 0;
    void operator()(weft::poll_future<int>& f, weft::poll_context<counts_its_looks>& c) {
        if (looks++ == 0) interested.push_back(&c);
        if (looks == 3) f.set(looks);
    }
};

TEST(waker, is_two_words_and_wakes_a_future_of_any_type) {
    static_assert(sizeof(weft::waker) == 2 * sizeof(void*));
    static_assert(!std::is_polymorphic_v<weft::waker>);
    std::vector<weft::waker*> interested;
    weft::poll_future<int, counts_its_looks> one(interested), two(interested);
    one.poll(), two.poll();
    ASSERT_EQ(interested.size(), 2u);
    while (one.is_pending() || two.is_pending())
        for (weft::waker* w : interested) w->wake();
    EXPECT_EQ(one.take() + two.take(), 6);
}

TEST(waker, unbound_wakes_nothing) {
    std::vector<weft::waker*> interested;
    weft::poll_context<counts_its_looks> c(interested);
    EXPECT_FALSE(c.is_bound());
    c.wake();
    EXPECT_EQ(c.data().looks, 0);
}

}  // namespace
