#include "weft/io/detail/stream_core.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace {

using weft::detail::io_entry;
using weft::detail::stream_core;

TEST(a_stream_core, has_separate_flags_for_a_reader_and_a_writer) {
    stream_core c;
    EXPECT_FALSE(c.turn(true).exchange(true));
    EXPECT_FALSE(c.turn(false).load());
    EXPECT_FALSE(c.turn(false).exchange(true));
    EXPECT_TRUE(c.turn(true).load());
}

TEST(a_stream_core, owns_its_descriptor) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    {
        auto owned = weft::detail::own_stream(pair[0], 0);
        ASSERT_TRUE(owned);
        const auto core = weft::detail::hold_stream(*std::move(owned));
        ASSERT_TRUE(core);
        EXPECT_EQ((*core)->owned.number(), pair[0]);
    }
    char b;
    EXPECT_EQ(::read(pair[1], &b, 1), 0);  // the other end is closed
    ::close(pair[1]);
}

TEST(a_stream_core, recognises_a_tcp_socket) {
    const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int local = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(weft::detail::kind_of_socket(tcp), io_entry::short_is_all);
    EXPECT_EQ(weft::detail::kind_of_socket(local), 0u);
    ::close(tcp);
    ::close(local);
}

}  // namespace
