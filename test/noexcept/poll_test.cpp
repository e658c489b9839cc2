// Poll futures where weft is built without exceptions: what cannot be thrown is reported in a
// result.
#include <gtest/gtest.h>

#include "weft/poll/poll_future.hpp"
#include "weft/run/run.hpp"

namespace weft {
namespace {

using told = result<int>;

struct says_what_it_is_told {
    int* looks;
    int needed;
    void operator()(poll_future<told>& f, poll_context<says_what_it_is_told>&) {
        if (++*looks == needed) f.set(needed);
    }
};

TEST(poll_without_exceptions, delivers_its_value) {
    int looks = 0;
    poll_future<told, says_what_it_is_told> f(&looks, 2);
    EXPECT_FALSE(f.poll());
    f.context().wake();
    EXPECT_EQ(*f.take(), 2);
}

TEST(poll_without_exceptions, reports_a_stop_and_a_destroyed_context) {
    int looks = 0;
    std::error_code stopped, abandoned;
    run([&] {
        fiber waits(
            [&] { stopped = await(poll_future<told, says_what_it_is_told>(&looks, 9)).error(); });
        this_fiber::yield();
        waits.request_stop();
        waits.join();
        poll_future<told> f;
        {
            poll_context<says_what_it_is_told> c(&looks, 9);
            f.poll(c);
        }
        abandoned = await(f).error();
    });
    EXPECT_EQ(stopped, std::errc::operation_canceled);
    EXPECT_EQ(abandoned, weft::errc::broken_promise);
    EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace weft
