// The laws of a listener from which no thread accepts.

#include <vector>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class full_backlog : public on_each_way {};
INSTANTIATE_ON_WAYS(full_backlog);

TEST_P(full_backlog, a_connect_waits_for_room) {
    const endpoint to = local_name();
    unix_listener l = unix_listener::bind(to, {.backlog = 1}).value();
    const auto fill = dial_until_full(to);
    std::error_code error;
    crew client(way(), [&](auto wait) -> task<> {
        auto s = co_await wait(unix_stream::async_connect(to));
        error = s.error();
    });
    client.asleep();
    EXPECT_FALSE(client.has_ended()) << error.message();
    for (std::size_t i = 0; i < fill.size(); ++i)
        EXPECT_GE(plain_fd(::accept(l.native_handle(), nullptr, nullptr)), 0);
    client.join();
    EXPECT_FALSE(error) << error.message();
}

TEST_P(full_backlog, a_connect_ends_at_its_deadline) {
    const endpoint to = local_name();
    unix_listener l = unix_listener::bind(to, {.backlog = 1}).value();
    const auto fill = dial_until_full(to);
    const long before = descriptor_count();
    std::error_code error;
    crew client(way(), [&](auto wait) -> task<> {
        auto s = co_await wait(unix_stream::async_connect(to, 10ms));
        error = s.error();
    });
    client.join();
    EXPECT_EQ(error, std::errc::timed_out) << error.message();
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(full_backlog, a_connect_is_refused_when_the_listener_closes) {
    const endpoint to = local_name();
    unix_listener l = unix_listener::bind(to, {.backlog = 1}).value();
    const auto fill = dial_until_full(to);
    std::error_code error;
    crew client(way(), [&](auto wait) -> task<> {
        auto s = co_await wait(unix_stream::async_connect(to));
        error = s.error();
    });
    client.asleep();
    EXPECT_FALSE(client.has_ended()) << error.message();
    l.close();
    client.join();
    EXPECT_EQ(error, std::errc::connection_refused) << error.message();
}

}  // namespace
}  // namespace weft::testing
