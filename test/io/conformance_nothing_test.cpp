// The laws of a transfer of nothing: it is done at once, whatever there is to wait for.

#include <string>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class nothing_to_move : public on_each_way {};
INSTANTIATE_ON_WAYS(nothing_to_move);

// From an empty end, and to a full one.
template <class Reads, class Writes>
void expect_nothing_is_moved(const way& w, Reads& reads, Writes& writes) {
    crew party(w, [&](auto wait) -> task<> {
        const timeout_scope soon(500ms);
        const auto some = co_await wait(reads.async_read({}));
        EXPECT_TRUE(some) << "read: " << some.error().message();
        const transferred all = co_await wait(reads.async_read_exact({}));
        EXPECT_TRUE(all) << "read_exact: " << all.error.message();
        const transferred to_a_full_one = co_await wait(writes.async_write_all({}));
        EXPECT_TRUE(to_a_full_one) << "write_all: " << to_a_full_one.error.message();
        const auto some_more = co_await wait(writes.async_write({}));
        EXPECT_TRUE(some_more) << "write: " << some_more.error().message();
    });
    party.join();
}
void fill_it(int number) {
    const std::string b(4096, 'x');
    while (::send(number, b.data(), b.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

TEST_P(nothing_to_move, a_stream_s_transfer_of_nothing_is_done_at_once) {
    auto [s, far] = half_of_unix();
    fill_it(s.native_handle());
    expect_nothing_is_moved(way(), s, s);
    auto [t, other] = half_of_tcp();
    fill_it(t.native_handle());
    expect_nothing_is_moved(way(), t, t);
}

TEST_P(nothing_to_move, a_pipe_s_transfer_of_nothing_is_done_at_once) {
    pipe p = pipe::open().value();
    pipe full = pipe::open().value();
    const std::string b(4096, 'x');
    while (::write(full.writer.native_handle(), b.data(), b.size()) > 0) {
    }
    expect_nothing_is_moved(way(), p.reader, full.writer);
}

TEST_P(nothing_to_move, an_empty_mark_is_found_at_once) {
    auto [s, far] = half_of_unix();
    crew party(way(), [&, &s = s](auto wait) -> task<> {
        const timeout_scope soon(500ms);
        std::string text;
        const auto n = co_await wait(s.async_read_until(text, ""));
        EXPECT_TRUE(n) << n.error().message();
        EXPECT_EQ(n.value_or(1), 0u);
    });
    party.join();
}

}  // namespace
}  // namespace weft::testing
