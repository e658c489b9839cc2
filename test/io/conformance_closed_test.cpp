// The laws of what was closed: each method of each type refuses, and leaves alone the descriptor,
// which is another file's by then.

#include <array>
#include <span>
#include <string>

#include "test/io/plain_peer.hpp"
#include "test/io/reused_fd.hpp"
#include "weft/io/directory.hpp"
#include "weft/io/directory_watch.hpp"
#include "weft/io/file.hpp"
#include "weft/io/relay.hpp"
#include "weft/io/unix_datagram.hpp"
#include "weft/io/unix_seqpacket.hpp"

namespace weft::testing {
namespace {

class closed_already : public on_each_way {};
INSTANTIATE_ON_WAYS(closed_already);

// An object that is closed here, and the file that has its descriptor from then on.
template <class T>
class closed_one {
public:
    explicit closed_one(T& of) : number_(of.native_handle()), there_((of.close(), number_)) {
        EXPECT_EQ(of.native_handle(), -1);
    }

    // Of each method: what it gave.
    template <class R>
    void refuses(const char* what, const R& r) {
        EXPECT_EQ(r.error(), errc::closed) << what;
        leaves(what);
    }
    void leaves(const char* what) { EXPECT_STREQ(there_.touched(), nullptr) << what; }
    void is_nowhere(const endpoint& e) {
        EXPECT_EQ(e.family(), AF_UNSPEC);
        leaves("an endpoint");
    }

private:
    const int number_;
    reused_fd there_;
};

// What every stream has.
template <class Stream, class Wait>
task<> expect_stream_refuses(closed_one<Stream>& c, Stream& s, Wait wait) {
    std::string b(16, 0);
    std::string text;
    std::array<std::span<std::byte>, 2> rooms{room(b), room(b)};
    std::array<std::span<const std::byte>, 2> texts{bytes_of("a"), bytes_of("b")};
    file f = file::adopt(file_of("text")).value();
    c.refuses("read", co_await wait(s.async_read(room(b))));
    c.refuses("read of nothing", co_await wait(s.async_read({})));
    c.refuses("read of several", co_await wait(s.async_read(rooms)));
    c.refuses("read_borrowed", co_await wait(s.async_read_borrowed()));
    c.refuses("read_exact", co_await wait(s.async_read_exact(room(b))));
    c.refuses("read_until", co_await wait(s.async_read_until(text, "\n")));
    c.refuses("write", co_await wait(s.async_write(bytes_of("x"))));
    c.refuses("write_all", co_await wait(s.async_write_all(bytes_of("x"))));
    c.refuses("write_all of nothing", co_await wait(s.async_write_all({})));
    c.refuses("write_all of several", co_await wait(s.async_write_all(texts)));
    c.refuses("read of no list", co_await wait(s.async_read(std::span(rooms).first(0))));
    c.refuses("write_all of no list", co_await wait(s.async_write_all(std::span(texts).first(0))));
    c.refuses("send_file", co_await wait(s.async_send_file(f, 0, 4)));
    for (const direction d : {direction::read, direction::write, direction::both})
        c.refuses("shutdown", s.shutdown(d));
    auto [other, far] = half_of_unix();
    c.refuses("relay from it", co_await wait(async_relay(s, other)));
    c.refuses("relay of nothing", co_await wait(async_relay(s, other, 0)));
    send_plainly(far, "text");
    const relay_result none = co_await wait(async_relay(other, s));
    c.refuses("relay to it", none);
    EXPECT_TRUE(none.rest().empty()) << "it has taken what it could not pass on";
    c.refuses("close_gracefully", co_await wait(s.async_close_gracefully(never)));
    s.set_options({.read_timeout = std::chrono::seconds(1)});
    s.abort();
    c.leaves("abort");
    s.close();
    c.leaves("close");
    c.is_nowhere(s.local_endpoint());
    c.is_nowhere(s.remote_endpoint());
    c.refuses("read, again", co_await wait(s.async_read(room(b))));
}

TEST_P(closed_already, a_tcp_stream_refuses) {
    auto [s, far] = half_of_tcp();
    closed_one c(s);
    crew agent(way(), [&, &s = s](auto wait) -> task<> {
        co_await expect_stream_refuses(c, s, wait);
        c.refuses("set_no_delay", s.set_no_delay(true));
        c.refuses("set_keep_alive", s.set_keep_alive(std::chrono::seconds(1)));
        c.refuses("set_user_timeout", s.set_user_timeout(std::chrono::seconds(1)));
    });
}

// What all have that descriptors can be passed by.
template <class Socket, class Wait>
task<> expect_numbers_are_refused(closed_one<Socket>& c, Socket& s, Wait wait) {
    std::string b(16, 0);
    std::array<owned_number, 1> numbers;
    const std::array<int, 1> mine{STDERR_FILENO};
    c.refuses("send_numbers", co_await wait(s.async_send_numbers(bytes_of("x"), mine)));
    c.refuses("recv_numbers", co_await wait(s.async_recv_numbers(room(b), numbers)));
    c.refuses("credentials", s.credentials());
}

TEST_P(closed_already, a_unix_stream_refuses) {
    auto [s, far] = half_of_unix();
    closed_one c(s);
    crew agent(way(), [&, &s = s](auto wait) -> task<> {
        co_await expect_stream_refuses(c, s, wait);
        co_await expect_numbers_are_refused(c, s, wait);
    });
}

template <class Listener>
void expect_listener_refuses(const way& w, Listener l) {
    closed_one c(l);
    crew agent(w, [&](auto wait) -> task<> {
        c.refuses("accept", co_await wait(l.async_accept()));
        c.is_nowhere(l.local_endpoint());
        EXPECT_EQ(l.refused_count(), 0u);
        l.close();
        c.leaves("close");
        c.refuses("accept, again", co_await wait(l.async_accept()));
    });
}
TEST_P(closed_already, a_listener_refuses) {
    expect_listener_refuses(way(), any_listener());
    expect_listener_refuses(way(), tcp_listener::bind("127.0.0.1:0", {.multishot = true}).value());
    expect_listener_refuses(way(),
                            tcp_listener::adopt(::dup(any_listener().native_handle())).value());
    expect_listener_refuses(way(), unix_listener::bind(local_name()).value());
    expect_listener_refuses(way(), unix_seqpacket_listener::bind(local_name()).value());
}

// What every socket of datagrams has.
template <class Socket, class Wait>
task<> expect_datagrams_are_refused(closed_one<Socket>& c, Socket& s, const endpoint& to,
                                    Wait wait) {
    std::string b(16, 0);
    std::array<incoming_datagram, 2> places{incoming_datagram{.into = room(b)},
                                            incoming_datagram{.into = room(b)}};
    const std::array<outgoing_datagram, 2> texts{
        outgoing_datagram{.bytes = bytes_of("a"), .to = &to},
        outgoing_datagram{.bytes = bytes_of("ab"), .to = &to, .segment = 1}};
    c.refuses("send", co_await wait(s.async_send(bytes_of("x"))));
    c.refuses("send of nothing", co_await wait(s.async_send({})));
    c.refuses("send_to", co_await wait(s.async_send_to(bytes_of("x"), to)));
    c.refuses("recv", co_await wait(s.async_recv(room(b))));
    c.refuses("recv of nothing", co_await wait(s.async_recv({})));
    c.refuses("recv_from", co_await wait(s.async_recv_from(room(b))));
    c.refuses("recv_many", co_await wait(s.async_recv_many(places)));
    c.refuses("send_many", co_await wait(s.async_send_many(texts)));
    c.refuses("recv_many of none", co_await wait(s.async_recv_many({})));
    c.refuses("send_many of none", co_await wait(s.async_send_many({})));
    c.refuses("set_peer", s.set_peer(to));
    s.set_recv_timeout(std::chrono::seconds(1));
    s.set_send_timeout(std::chrono::seconds(1));
    s.close();
    c.leaves("close");
    c.is_nowhere(s.local_endpoint());
    c.is_nowhere(s.remote_endpoint());
}

TEST_P(closed_already, a_udp_socket_refuses) {
    udp_socket other = udp_socket::bind("127.0.0.1:0").value();
    udp_socket s =
        udp_socket::connect(other.local_endpoint(), {.coalesce = true, .details = true}).value();
    closed_one c(s);
    crew agent(way(), [&](auto wait) -> task<> {
        co_await expect_datagrams_are_refused(c, s, other.local_endpoint(), wait);
        const ip_address group = ip_address::v4(239, 1, 2, 3);
        const ip_address source = ip_address::v4(127, 0, 0, 1);
        c.refuses("join", s.join(group));
        c.refuses("leave", s.leave(group));
        c.refuses("join_source", s.join_source(group, source));
        c.refuses("leave_source", s.leave_source(group, source));
        c.refuses("set_multicast_interface", s.set_multicast_interface(1));
        c.refuses("set_multicast_hops", s.set_multicast_hops(1));
        c.refuses("set_multicast_loop", s.set_multicast_loop(true));
        c.refuses("set_broadcast", s.set_broadcast(true));
        EXPECT_FALSE(s.can_cut());
        EXPECT_FALSE(s.coalesces());
    });
}

TEST_P(closed_already, a_unix_datagram_refuses) {
    const endpoint at = local_name();
    unix_datagram other = unix_datagram::bind(at).value();
    unix_datagram s = unix_datagram::connect(at).value();
    closed_one c(s);
    crew agent(way(),
               [&](auto wait) -> task<> { co_await expect_datagrams_are_refused(c, s, at, wait); });
}

TEST_P(closed_already, a_unix_seqpacket_refuses) {
    auto [s, far] = unix_seqpacket::pair().value();
    closed_one c(s);
    crew agent(way(), [&, &s = s](auto wait) -> task<> {
        std::string b(16, 0);
        c.refuses("send", co_await wait(s.async_send(bytes_of("x"))));
        c.refuses("recv", co_await wait(s.async_recv(room(b))));
        co_await expect_numbers_are_refused(c, s, wait);
        c.refuses("end", s.end());
        s.close();
        c.leaves("close");
        c.is_nowhere(s.local_endpoint());
        c.is_nowhere(s.remote_endpoint());
    });
}

TEST_P(closed_already, the_ends_of_a_pipe_refuse) {
    pipe p = pipe::open().value();
    closed_one r(p.reader);
    closed_one w(p.writer);
    crew agent(way(), [&](auto wait) -> task<> {
        std::string b(16, 0);
        std::array<std::span<std::byte>, 2> rooms{room(b), room(b)};
        std::array<std::span<const std::byte>, 2> texts{bytes_of("a"), bytes_of("b")};
        r.refuses("read", co_await wait(p.reader.async_read(room(b))));
        r.refuses("read of several", co_await wait(p.reader.async_read(rooms)));
        r.refuses("read_exact", co_await wait(p.reader.async_read_exact(room(b))));
        r.refuses("read_borrowed", co_await wait(p.reader.async_read_borrowed()));
        w.refuses("write", co_await wait(p.writer.async_write(bytes_of("x"))));
        w.refuses("write_all", co_await wait(p.writer.async_write_all(bytes_of("x"))));
        w.refuses("write_all of several", co_await wait(p.writer.async_write_all(texts)));
        p.reader.close();
        r.leaves("close");
        p.writer.close();
        w.leaves("close");
    });
}

// A file by offsets, and one that is read like a pipe.
TEST_P(closed_already, a_file_refuses) {
    file f = file::adopt(file_of("text")).value();
    closed_one c(f);
    auto [s, far] = half_of_tcp();
    pipe_reader in = pipe_reader::adopt(file_of("text")).value();
    closed_one i(in);
    pipe_writer out = pipe_writer::adopt(file_of("text")).value();
    closed_one o(out);
    crew agent(way(), [&, &s = s](auto wait) -> task<> {
        std::string b(4, 0);
        std::array<std::span<std::byte>, 2> rooms{room(b), room(b)};
        std::array<std::span<const std::byte>, 2> texts{bytes_of("a"), bytes_of("b")};
        c.refuses("read of several", co_await wait(f.async_read(rooms)));
        c.refuses("read_at of several", co_await wait(f.async_read_at(rooms, 0)));
        c.refuses("read_exact of several", co_await wait(f.async_read_exact(rooms)));
        c.refuses("read_exact_at of several", co_await wait(f.async_read_exact_at(rooms, 0)));
        c.refuses("write_all of several", co_await wait(f.async_write_all(texts)));
        c.refuses("write_all_at of several", co_await wait(f.async_write_all_at(texts, 0)));
        c.refuses("read", co_await wait(f.async_read(room(b))));
        c.refuses("read_at", co_await wait(f.async_read_at(room(b), 0)));
        c.refuses("read_exact", co_await wait(f.async_read_exact(room(b))));
        c.refuses("read_exact_at", co_await wait(f.async_read_exact_at(room(b), 0)));
        c.refuses("write_all", co_await wait(f.async_write_all(bytes_of("x"))));
        c.refuses("write_all_at", co_await wait(f.async_write_all_at(bytes_of("x"), 0)));
        c.refuses("read of nothing", co_await wait(f.async_read_at({}, 0)));
        c.refuses("write_all of nothing", co_await wait(f.async_write_all_at({}, 0)));
        c.refuses("write_all of no list",
                  co_await wait(f.async_write_all_at(std::span(texts).first(0), 0)));
        c.refuses("size", co_await wait(f.async_size()));
        c.refuses("resize", co_await wait(f.async_resize(1)));
        c.refuses("sync", co_await wait(f.async_sync()));
        c.refuses("send_file", co_await wait(s.async_send_file(f, 0, 4)));
        EXPECT_EQ(f.position(), 0u);
        f.seek(0);
        f.close();
        c.leaves("close");
        i.refuses("read", co_await wait(in.async_read(room(b))));
        i.refuses("read_exact", co_await wait(in.async_read_exact(room(b))));
        i.refuses("read_borrowed", co_await wait(in.async_read_borrowed()));
        o.refuses("write", co_await wait(out.async_write(bytes_of("x"))));
        o.refuses("write_all", co_await wait(out.async_write_all(bytes_of("x"))));
    });
}

TEST_P(closed_already, a_directory_refuses) {
    directory d = directory::open("/").value();
    closed_one c(d);
    crew agent(way(), [&](auto wait) -> task<> {
        c.refuses("read", co_await wait(d.async_read()));
        c.refuses("rewind", d.rewind());
        d.close();
        c.leaves("close");
    });
}

TEST_P(closed_already, a_directory_watch_refuses) {
    directory_watch w = directory_watch::open().value();
    const int root = w.add("/").value();
    closed_one c(w);
    crew agent(way(), [&](auto wait) -> task<> {
        c.refuses("add", w.add("/"));
        c.refuses("remove", w.remove(root));
        c.refuses("wait", co_await wait(w.async_wait()));
        w.close();
        c.leaves("close");
    });
}

// The descriptor is weft's, and the watch outlives the object that had it.
TEST_P(closed_already, a_watch_refuses) {
    auto [s, far] = half_of_unix();
    const fd_watch w(s.native_handle());
    closed_one c(s);
    crew agent(way(), [&](auto wait) -> task<> {
        for (const fd_events e : {fd_events::read, fd_events::write, fd_events::urgent})
            c.refuses("wait", co_await wait(w.async_wait(e)));
    });
}

}  // namespace
}  // namespace weft::testing
