// The laws of transfers that are more than the bytes of one buffer: lists, files, relays, file
// descriptors, batches and segments; and of what has a name: directories, paths, files, peers.

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/io/plain_peer.hpp"
#include "test/io/scratch_folder.hpp"
#include "weft/io/directory.hpp"
#include "weft/io/directory_watch.hpp"
#include "weft/io/file.hpp"
#include "weft/io/paths.hpp"
#include "weft/io/relay.hpp"

namespace weft::testing {
namespace {

class transfer_law : public on_each_way {};
INSTANTIATE_ON_WAYS(transfer_law);

void make_small(int number) {
    constexpr int bytes = 1 << 16;
    for (const int name : {SO_SNDBUF, SO_RCVBUF})
        ::setsockopt(number, SOL_SOCKET, name, &bytes, sizeof bytes);
}
// All that comes, until so many bytes have or nothing comes for a while.
std::string read_slowly(int far, std::size_t bytes) {
    std::string all;
    std::string piece(50'000, 0);
    while (all.size() < bytes && is_told(far)) {
        const ::ssize_t n = ::read(far, piece.data(), piece.size());
        if (n <= 0) break;
        all.append(piece, 0, static_cast<std::size_t>(n));
    }
    return all;
}

template <class Writer, class Reader>
void expect_lists_keep_their_order(const way& w, Writer& writes, int reads_it, Reader& reads,
                                   int writes_it) {
    const std::string much = bytes_unlike(1 << 20);
    const auto part = [&](std::size_t from, std::size_t bytes) {
        return bytes_of(much).subspan(from, bytes);
    };
    transfer_result t;
    crew writer(w, [&](auto wait) -> task<> {
        const std::array<std::span<const std::byte>, 4> list{
            part(0, 7), {}, part(7, 900'000), part(900'007, much.size() - 900'007)};
        t = co_await wait(writes.async_write_all(list));
    });
    writer.asleep();
    EXPECT_FALSE(writer.has_ended()) << "there is no room for all of it";
    const std::string got = read_slowly(reads_it, much.size());
    writer.join();
    EXPECT_TRUE(t) << t.error().message();
    EXPECT_EQ(t.bytes(), much.size());
    EXPECT_TRUE(got == much);

    std::string first(3, 0);
    std::string second(5, 0);
    std::size_t come = 0;
    crew reader(w, [&](auto wait) -> task<> {
        const std::array<std::span<std::byte>, 3> rooms{room(first), {}, room(second)};
        const auto n = co_await wait(reads.async_read(rooms));
        come = n.value_or(0);
    });
    reader.asleep();
    EXPECT_EQ(::write(writes_it, "abcdefghij", 10), 10);
    reader.join();
    EXPECT_EQ(come, 8u);
    EXPECT_EQ(first + second, "abcdefgh");
}

TEST_P(transfer_law, a_buffer_list_is_written_and_read_in_order) {
    auto [s, far] = half_of_tcp();
    make_small(s.native_handle());
    make_small(far);
    expect_lists_keep_their_order(way(), s, far, s, far);
    auto [u, other] = half_of_unix();
    make_small(u.native_handle());
    expect_lists_keep_their_order(way(), u, other, u, other);
    pipe p = pipe::open().value();
    expect_lists_keep_their_order(way(), p.writer, p.reader.native_handle(), p.reader,
                                  p.writer.native_handle());
}

template <class Stream>
void expect_file_is_sent(const way& w, Stream& s, int far) {
    make_small(s.native_handle());
    make_small(far);
    const std::string much = bytes_unlike(2 << 20);
    const file from = file::adopt(file_of(much)).value();
    transfer_result t;
    transfer_result beyond;
    crew sender(w, [&](auto wait) -> task<> {
        t = co_await wait(s.async_send_file(from, 5, much.size() - 5));
        beyond = co_await wait(s.async_send_file(from, much.size() - 2, 3));
    });
    sender.asleep();
    EXPECT_FALSE(sender.has_ended());
    const std::string got = read_slowly(far, much.size() - 5 + 2);
    sender.join();
    EXPECT_TRUE(t) << t.error().message();
    EXPECT_EQ(t.bytes(), much.size() - 5);
    EXPECT_TRUE(got == much.substr(5) + much.substr(much.size() - 2));
    EXPECT_EQ(beyond.bytes(), 2u);
    EXPECT_EQ(beyond.error(), errc::unexpected_eof) << beyond.error().message();
}

TEST_P(transfer_law, a_file_is_sent_whole_and_in_order) {
    auto [s, far] = half_of_tcp();
    expect_file_is_sent(way(), s, far);
    auto [u, other] = half_of_unix();
    expect_file_is_sent(way(), u, other);
}

TEST_P(transfer_law, a_reset_during_send_file_is_reported_with_the_part_sent) {
    auto [s, far] = half_of_tcp();
    make_small(s.native_handle());
    make_small(far);
    const std::string much(8 << 20, 'x');
    const file from = file::adopt(file_of(much)).value();
    transfer_result t;
    crew sender(way(), [&, &s = s](auto wait) -> task<> {
        t = co_await wait(s.async_send_file(from, 0, much.size()));
    });
    sender.asleep();
    reset(far);
    sender.join();
    EXPECT_GT(t.bytes(), 0u);
    EXPECT_LT(t.bytes(), much.size());
    EXPECT_TRUE(t.error() == std::errc::connection_reset || t.error() == std::errc::broken_pipe)
        << t.error().message();
}

TEST_P(transfer_law, a_relay_forwards_all_and_the_end_through_a_full_socket) {
    const long before = descriptor_count();
    {
        auto [from, sends] = half_of_tcp();
        auto [to, receives] = half_of_unix();
        make_small(to.native_handle());
        const std::string much = bytes_unlike(2 << 20);
        relay_result r;
        crew agent(way(), [&, &from = from, &to = to](auto wait) -> task<> {
            r = co_await wait(async_relay(from, to));
        });
        agent.asleep();
        std::thread sender([&, &sends = sends] {
            for (std::size_t at = 0; at < much.size();) {
                const ::ssize_t n = ::send(sends, much.data() + at, much.size() - at, MSG_NOSIGNAL);
                if (n <= 0) break;
                at += static_cast<std::size_t>(n);
            }
            ::shutdown(sends, SHUT_WR);
        });
        const std::string got = read_slowly(receives, much.size());
        sender.join();
        agent.join();
        EXPECT_TRUE(r) << r.error().message();
        EXPECT_EQ(r.bytes(), much.size());
        EXPECT_TRUE(r.rest().empty());
        EXPECT_TRUE(got == much);
    }
    EXPECT_EQ(descriptor_count(), before);
}

std::error_code ending_error(const transfer_result& t) { return t.error(); }
std::error_code ending_error(const result<void>& r) { return r.error(); }

template <class Socket>
void expect_numbers_are_passed(const way& w, Socket& near, Socket& far) {
    auto [passed, other] = half_of_unix();
    crew receiver(w, [&](auto wait) -> task<> {
        std::string b(8, 0);
        std::array<owned_number, 1> numbers;
        auto came = co_await wait(near.async_recv_numbers(room(b), numbers));
        EXPECT_TRUE(came) << came.error().message();
        if (!came) co_return;
        EXPECT_EQ(b.substr(0, came->bytes), "two");
        EXPECT_EQ(came->numbers, 1u);
        EXPECT_TRUE(came->has_lost_numbers) << "there was room for one";
        EXPECT_EQ(::fcntl(numbers[0].get(), F_GETFD), FD_CLOEXEC);
        auto mine = unix_stream::adopt(numbers[0].release());
        const transfer_result t = co_await wait(mine->async_write_all(bytes_of("x")));
        EXPECT_TRUE(t) << t.error().message();
        // And back: it stays the sender's as well.
        const std::array<int, 1> back{mine->native_handle()};
        auto sent = co_await wait(near.async_send_numbers(bytes_of("back"), back));
        EXPECT_FALSE(ending_error(sent)) << ending_error(sent).message();
        EXPECT_NE(mine->native_handle(), -1);
    });
    receiver.asleep();
    const std::array<int, 2> both{passed.native_handle(), passed.native_handle()};
    EXPECT_FALSE(ending_error(far.send_numbers(bytes_of("two"), both)));
    receiver.join();
    EXPECT_EQ(read_plainly(other, 1), "x");
    std::string b(8, 0);
    std::array<owned_number, 2> numbers;
    const auto came = far.recv_numbers(room(b), numbers);
    EXPECT_TRUE(came && came->numbers == 1 && b.substr(0, came->bytes) == "back");
}

TEST_P(transfer_law, descriptors_are_passed_and_lost_ones_are_reported) {
    const long before = descriptor_count();
    {
        auto [a, b] = unix_stream::pair().value();
        expect_numbers_are_passed(way(), a, b);
        auto [c, d] = unix_seqpacket::pair().value();
        expect_numbers_are_passed(way(), c, d);
    }
    EXPECT_EQ(descriptor_count(), before);
}

template <class Socket>
void expect_batches_keep_their_order(const way& w, Socket& s, int far) {
    std::vector<std::string> got;
    send_many_result sent;
    crew agent(w, [&](auto wait) -> task<> {
        std::array<std::string, 8> rooms;
        std::array<incoming_datagram, 8> batch;
        for (std::size_t i = 0; i < 8; ++i) {
            rooms[i].resize(4);
            batch[i].into = room(rooms[i]);
        }
        while (got.size() < 5) {
            const auto n = co_await wait(s.async_recv_many(batch));
            if (!n) break;
            for (std::size_t i = 0; i < *n; ++i)
                got.push_back(rooms[i].substr(0, batch[i].bytes) + "+" +
                              std::to_string(batch[i].truncated_bytes));
        }
        std::array<outgoing_datagram, 50> all;
        std::array<std::string, 50> texts;
        for (std::size_t i = 0; i < 50; ++i) {
            texts[i] = std::to_string(i);
            all[i].bytes = bytes_of(texts[i]);
        }
        sent = co_await wait(s.async_send_many(all));
    });
    agent.asleep();
    for (const char* const text : {"a", "bcd", "longer", "e", "f"}) send_plainly(far, text);
    char b[16];
    for (int i = 0; i < 50; ++i) {
        until_readable(far);
        const ::ssize_t n = ::recv(far, b, sizeof b, 0);
        EXPECT_EQ(std::string(b, n > 0 ? static_cast<std::size_t>(n) : 0), std::to_string(i));
    }
    agent.join();
    EXPECT_EQ(got, (std::vector<std::string>{"a+0", "bcd+0", "long+2", "e+0", "f+0"}));
    EXPECT_TRUE(sent) << sent.error().message();
    EXPECT_EQ(sent.count(), 50u);
}

TEST_P(transfer_law, a_batch_is_sent_and_received_in_order) {
    udp_socket s = udp_socket::bind("127.0.0.1:0").value();
    const plain_fd far = dialled(s.local_endpoint(), 0, SOCK_DGRAM);
    ASSERT_TRUE(s.set_peer(endpoint::of_socket(far)));
    expect_batches_keep_their_order(way(), s, far);
    int n[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, n), 0);
    unix_datagram local = unix_datagram::adopt(n[0]).value();
    expect_batches_keep_their_order(way(), local, plain_fd(n[1]));
}

// Joined or not by the system, cut by it or here: what comes is what was sent.
TEST_P(transfer_law, segments_are_received_as_sent_with_their_local_address) {
    udp_socket to = udp_socket::bind("127.0.0.1:0", {.coalesce = true, .details = true}).value();
    udp_socket from = udp_socket::connect(to.local_endpoint()).value();
    const std::string text = bytes_unlike(10'500);
    crew receiver(way(), [&](auto wait) -> task<> {
        std::string b(1 << 16, 0);
        std::array<incoming_datagram, 1> one{incoming_datagram{.into = room(b)}};
        std::string all;
        while (all.size() < text.size()) {
            const auto n = co_await wait(to.async_recv_many(one));
            if (n.value_or(0) != 1) {
                ADD_FAILURE() << n.error().message();
                co_return;
            }
            all.append(b, 0, one[0].bytes);
            const std::size_t size = one[0].segment == 0 ? one[0].bytes : one[0].segment;
            EXPECT_TRUE(size == 1000 || (size == 500 && all.size() == text.size())) << size;
            EXPECT_EQ(one[0].to.address, ip_address::loopback());
            EXPECT_GT(one[0].to.interface_index, 0u);
            EXPECT_GE(one[0].hops, 1);
            EXPECT_EQ(one[0].from.port(), from.local_endpoint().port());
        }
        EXPECT_TRUE(all == text);
    });
    receiver.asleep();
    crew sender(way(), [&](auto wait) -> task<> {
        const std::array<outgoing_datagram, 1> all{
            outgoing_datagram{.bytes = bytes_of(text), .segment = 1000}};
        const send_many_result sent = co_await wait(from.async_send_many(all));
        EXPECT_TRUE(sent) << sent.error().message();
        EXPECT_EQ(sent.count(), 1u);
    });
    sender.join();
    receiver.join();
}

// Of both: none is lost, and they keep their order.
template <class Socket>
void expect_sends_wait_for_room(const way& w, Socket& s, int far) {
    constexpr int count = 2000;
    crew sender(w, [&](auto wait) -> task<> {
        for (int i = 0; i < count; ++i) {
            std::string text = std::to_string(i);
            text.resize(500);
            const auto r = co_await wait(s.async_send(bytes_of(text)));
            EXPECT_TRUE(r) << r.error().message();
        }
    });
    sender.asleep();
    EXPECT_FALSE(sender.has_ended());
    char b[600];
    for (int i = 0; i < count; ++i) {
        if (!is_told(far)) break;
        EXPECT_EQ(::recv(far, b, sizeof b, 0), 500);
        EXPECT_EQ(std::atoi(b), i);
    }
    sender.join();
}

TEST_P(transfer_law, a_local_message_waits_for_room) {
    int n[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, n), 0);
    unix_datagram datagrams = unix_datagram::adopt(n[0]).value();
    expect_sends_wait_for_room(way(), datagrams, plain_fd(n[1]));
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n), 0);
    unix_seqpacket packets = unix_seqpacket::adopt(n[0]).value();
    expect_sends_wait_for_room(way(), packets, plain_fd(n[1]));
}

TEST_P(transfer_law, a_seqpacket_can_end_one_direction_and_keep_the_other) {
    auto [s, far] = unix_seqpacket::pair().value();
    crew agent(way(), [&, &s = s](auto wait) -> task<> {
        EXPECT_TRUE(s.end());
        const auto late = co_await wait(s.async_send(bytes_of("x")));
        EXPECT_EQ(late.error(), std::errc::broken_pipe) << late.error().message();
        std::string b(8, 0);
        const auto r = co_await wait(s.async_recv(room(b)));
        EXPECT_EQ(r.value_or(recv_result{}).bytes, 4u);
        const auto end = co_await wait(s.async_recv(room(b)));
        EXPECT_EQ(end.error(), errc::unexpected_eof) << end.error().message();
    });
    agent.asleep();
    char c;
    EXPECT_EQ(::recv(far.native_handle(), &c, 1, 0), 0);
    send_plainly(far.native_handle(), "last");
    EXPECT_TRUE(far.end());
    agent.join();
}

// -- what has a name ----------------------------------------------------------------------------

TEST_P(transfer_law, paths_are_made_read_renamed_and_removed) {
    const long before = descriptor_count();
    const scratch_folder folder;
    constexpr std::size_t count = 1500;  // several batches
    crew agent(way(), [&](auto wait) -> task<> {
        const std::string sub = folder / "sub";
        EXPECT_TRUE(co_await wait(async_make_directory(sub)));
        const auto again = co_await wait(async_make_directory(sub));
        EXPECT_EQ(again.error(), std::errc::file_exists) << again.error().message();
        for (std::size_t i = 0; i < count; ++i) put_file(sub + "/" + std::to_string(i), "");
        std::vector<std::string> names;
        auto d = co_await wait(directory::async_open(sub));
        EXPECT_TRUE(d) << d.error().message();
        for (;;) {
            const auto some = co_await wait(d->async_read());
            EXPECT_TRUE(some) << some.error().message();
            if (!some || some->empty()) break;
            for (const directory_entry& e : *some) names.push_back(e.name);
        }
        std::ranges::sort(names);
        EXPECT_EQ(names.size(), count);
        EXPECT_TRUE(std::ranges::adjacent_find(names) == names.end());

        auto f = co_await wait(
            file::async_open(folder / "part", {.write = true, .create = true, .exclusive = true}));
        EXPECT_TRUE(f) << f.error().message();
        EXPECT_TRUE(co_await wait(f->async_write_all(bytes_of("text"))));
        EXPECT_TRUE(co_await wait(async_rename(folder / "part", folder / "whole")));
        const auto gone = co_await wait(async_stat(folder / "part"));
        EXPECT_EQ(gone.error(), std::errc::no_such_file_or_directory) << gone.error().message();
        const auto is = co_await wait(async_stat(folder / "whole"));
        EXPECT_EQ(is.value_or(file_status{}).bytes, 4u);
        const auto full = co_await wait(async_remove(sub));
        EXPECT_EQ(full.error(), std::errc::directory_not_empty) << full.error().message();
        EXPECT_TRUE(co_await wait(async_remove(folder / "whole")));
    });
    agent.join();
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(transfer_law, directory_events_are_reported_in_order) {
    const scratch_folder folder;
    directory_watch w = directory_watch::open().value();
    ASSERT_TRUE(w.add(folder.path(), file_events::created | file_events::removed));
    std::vector<std::string> reported;
    crew agent(way(), [&](auto wait) -> task<> {
        while (reported.size() < 20) {
            const auto some = co_await wait(w.async_wait());
            if (!some) break;
            for (const file_event& e : *some)
                reported.push_back((has(e.what, file_events::created) ? "+" : "-") + e.name);
        }
    });
    std::vector<std::string> done;
    for (int i = 0; i < 10; ++i) {
        if (i % 3 == 0) agent.asleep();
        const std::string name = std::to_string(i);
        put_file(folder / name, "");
        ::unlink((folder / name).c_str());
        done.push_back("+" + name);
        done.push_back("-" + name);
    }
    agent.join();
    EXPECT_EQ(reported, done);
}

template <class Listener, class Stream>
void expect_peer_is_known(const way& w, int type) {
    const endpoint to = local_name();
    Listener l = Listener::bind(to).value();
    crew server(w, [&](auto wait) -> task<> {
        auto s = co_await wait(l.async_accept());
        EXPECT_TRUE(s) << s.error().message();
        if (s) {
            EXPECT_EQ(s->credentials().value_or(peer_credentials{}).process, ::getpid());
        }
        auto c = co_await wait(Stream::async_connect(to));
        EXPECT_TRUE(c) << c.error().message();
        if (c) {
            EXPECT_EQ(c->credentials().value_or(peer_credentials{}).user, ::geteuid());
        }
    });
    server.asleep();
    const plain_fd client = dialled(to, 0, type);
    server.join();
}

TEST_P(transfer_law, the_peer_of_a_local_connection_is_known) {
    expect_peer_is_known<unix_listener, unix_stream>(way(), SOCK_STREAM);
    expect_peer_is_known<unix_seqpacket_listener, unix_seqpacket>(way(), SOCK_SEQPACKET);
}

// One that the program was given, beside the one that has it too; and by a name of two families.
TEST_P(transfer_law, an_adopted_listener_accepts_a_connect_by_name) {
    tcp_listener old = any_listener();
    tcp_listener l = tcp_listener::adopt(::dup(old.native_handle())).value();
    old.close();
    const std::string name = "localhost:" + std::to_string(l.local_endpoint().port());
    crew server(way(), [&](auto wait) -> task<> {
        auto s = co_await wait(l.async_accept());
        EXPECT_TRUE(s) << s.error().message();
        if (!s) co_return;
        const transfer_result t = co_await wait(s->async_write_all(bytes_of("x")));
        EXPECT_TRUE(t) << t.error().message();
    });
    server.asleep();
    crew client(way(), [&](auto wait) -> task<> {
        auto s = co_await wait(tcp_stream::async_connect(name));
        EXPECT_TRUE(s) << s.error().message();
        if (!s) co_return;
        std::string b(1, 0);
        const transfer_result t = co_await wait(s->async_read_exact(room(b)));
        EXPECT_TRUE(t) << t.error().message();
    });
    client.join();
    server.join();
}

}  // namespace
}  // namespace weft::testing
