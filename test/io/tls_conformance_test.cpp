// The laws of whatever bytes come from, and the cancel table, of tls_stream.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "test/io/cancel_table.hpp"
#include "test/io/channel_laws.hpp"
#include "test/io/plain_peer.hpp"
#include "test/io/tls_pair.hpp"

namespace weft::testing {
namespace {

class tls_end final : public near_end {
public:
    explicit tls_end(tls_stream of) : of_(std::move(of)) {}
    task<result<std::size_t>> read(suspends, std::span<std::byte> into) override {
        co_return co_await of_.async_read(into);
    }
    task<result<std::size_t>> read(blocks, std::span<std::byte> into) override {
        co_return of_.read(into);
    }
    int number() const override { return of_.under().native_handle(); }
    void close() override { of_.close(); }

private:
    mutable tls_stream of_;
};

// The near end is the server's: a client's end is sent tickets before anything else.
channel open_tls_of(tls_pair p) {
    const auto far = std::make_shared<tls_stream>(std::move(p.client));
    channel c;
    c.near = std::make_unique<tls_end>(std::move(p.server));
    c.feed = [far](int i) {
        const std::string s = line_of(i);
        EXPECT_TRUE(far->write_all(bytes_of(s)));
        return s;
    };
    c.end = [far] { EXPECT_TRUE(far->shutdown()); };
    c.far = std::make_shared<plain_fd>(::dup(far->under().native_handle()));
    return c;
}

channel open_tls() { return open_tls_of(shaken_by_threads()); }
// In the kernel where the kernel can; elsewhere it is the same as the other.
channel open_tls_in_kernel() { return open_tls_of(shaken_by_threads(unshaken_in_kernel())); }

constexpr channel_kind tls_kinds[] = {{"tls", open_tls}, {"tls_in_kernel", open_tls_in_kernel}};
INSTANTIATE_CHANNEL_LAWS(tls_kinds, all_ways);

// --- what a peer may do, step by step ---

class tls_law : public on_each_way {};
INSTANTIATE_ON_WAYS(tls_law);

void make_small(tls_pair& p) {
    for (tls_stream* const s : {&p.client, &p.server})
        for (const int name : {SO_SNDBUF, SO_RCVBUF}) {
            constexpr int bytes = 1 << 16;
            ::setsockopt(s->under().native_handle(), SOL_SOCKET, name, &bytes, sizeof bytes);
        }
}

TEST_P(tls_law, a_reset_is_reported_at_each_step) {
    const auto expect_told = [](const std::error_code& e, const char* step) {
        EXPECT_TRUE(e == std::errc::connection_reset || e == std::errc::broken_pipe)
            << step << ": " << e.message();
    };
    std::error_code error;
    {
        tls_pair p = unshaken();
        crew agent(way(), [&](auto wait) -> task<> {
            const auto r = co_await wait(p.server.async_handshake());
            error = r.error();
        });
        agent.asleep();
        p.client.under().abort();
        agent.join();
        expect_told(error, "while it shakes hands");
    }
    {
        tls_pair p = shaken_by_threads();
        crew agent(way(), [&](auto wait) -> task<> {
            std::string b(8, 0);
            const auto r = co_await wait(p.server.async_read(room(b)));
            error = r.error();
        });
        agent.asleep();
        p.client.under().abort();
        agent.join();
        expect_told(error, "while it reads");
    }
    {
        tls_pair p = shaken_by_threads();
        transfer_result t;
        crew agent(way(), [&](auto wait) -> task<> {
            std::string b(8, 0);
            t = co_await wait(p.server.async_read_exact(room(b)));
        });
        agent.asleep();
        EXPECT_TRUE(p.client.write_all(bytes_of("123")));
        // Until it has taken them: a reset drops the bytes in the socket.
        int left = 1;
        while (left != 0 && !agent.has_ended())
            ::ioctl(p.server.under().native_handle(), FIONREAD, &left);
        agent.asleep();
        p.client.under().abort();
        agent.join();
        EXPECT_EQ(t.bytes(), 3u);
        expect_told(t.error(), "after a part");
    }
    {
        tls_pair p = shaken_by_threads();
        make_small(p);
        const std::string much(8 << 20, 'x');
        transfer_result t;
        crew agent(way(), [&](auto wait) -> task<> {
            t = co_await wait(p.server.async_write_all(bytes_of(much)));
        });
        agent.asleep();
        p.client.under().abort();
        agent.join();
        EXPECT_LT(t.bytes(), much.size());
        expect_told(t.error(), "while it writes");
    }
}

TEST_P(tls_law, bytes_without_room_are_sent_later) {
    tls_pair p = shaken_by_threads();
    make_small(p);
    const std::string much = bytes_unlike(3 << 20);
    transfer_result t;
    crew writer(way(), [&](auto wait) -> task<> {
        t = co_await wait(p.server.async_write_all(bytes_of(much)));
        EXPECT_TRUE(co_await wait(p.server.async_shutdown()));
    });
    writer.asleep();
    EXPECT_FALSE(writer.has_ended());
    std::string got;
    std::string piece(100'000, 0);
    for (;;) {
        const auto n = p.client.read(room(piece));
        if (n.value_or(0) == 0) {
            EXPECT_TRUE(n) << n.error().message();
            break;
        }
        got.append(piece, 0, *n);
    }
    writer.join();
    EXPECT_TRUE(t) << t.error().message();
    EXPECT_EQ(t.bytes(), much.size());
    EXPECT_TRUE(got == much);
}

TEST_P(tls_law, either_direction_may_end_before_the_other) {
    tls_pair p = shaken_by_threads();
    crew both(way(), [&](auto wait) -> task<> {
        EXPECT_TRUE(co_await wait(p.server.async_shutdown()));
        const transfer_result late = co_await wait(p.server.async_write_all(bytes_of("x")));
        EXPECT_EQ(late.error(), std::errc::broken_pipe) << late.error().message();
        std::string b(4, 0);
        const transfer_result t = co_await wait(p.server.async_read_exact(room(b)));
        EXPECT_TRUE(t) << t.error().message();
        EXPECT_EQ(b, "last");
        const auto end = co_await wait(p.server.async_read(room(b)));
        EXPECT_EQ(end.value_or(1), 0u) << end.error().message();
    });
    both.asleep();
    std::string b(4, 0);
    EXPECT_EQ(p.client.read(room(b)).value_or(1), 0u);
    EXPECT_TRUE(p.client.write_all(bytes_of("last")));
    both.asleep();
    EXPECT_TRUE(p.client.shutdown());
    both.join();
}

TEST_P(tls_law, an_empty_transfer_completes_at_once) {
    tls_pair p = shaken_by_threads();
    make_small(p);
    {
        const timeout_scope soon(50ms);
        const std::string much(4 << 20, 'x');
        EXPECT_FALSE(p.server.write_all(bytes_of(much))) << "there is room for all of it";
    }
    crew agent(way(), [&](auto wait) -> task<> {
        const timeout_scope soon(500ms);
        const auto some = co_await wait(p.server.async_read({}));
        EXPECT_TRUE(some) << some.error().message();
        const transfer_result all = co_await wait(p.server.async_read_exact({}));
        EXPECT_TRUE(all) << all.error().message();
        const transfer_result to_a_full_one = co_await wait(p.server.async_write_all({}));
        EXPECT_TRUE(to_a_full_one) << to_a_full_one.error().message();
    });
    agent.join();
}

TEST_P(tls_law, a_closed_stream_refuses_and_leaves_its_fd_alone) {
    tls_pair p = shaken_by_threads();
    const int number = p.server.under().native_handle();
    p.server.close();
    const reused_fd there(number);
    crew agent(way(), [&](auto wait) -> task<> {
        std::string b(8, 0);
        const auto expect_closed = [&](const std::error_code& e, const char* what) {
            EXPECT_EQ(e, errc::closed) << what << ": " << e.message();
            EXPECT_STREQ(there.touched(), nullptr) << what;
        };
        const auto n = co_await wait(p.server.async_read(room(b)));
        expect_closed(n.error(), "read");
        const auto none = co_await wait(p.server.async_read({}));
        expect_closed(none.error(), "read of nothing");
        const transfer_result exact = co_await wait(p.server.async_read_exact(room(b)));
        expect_closed(exact.error(), "read_exact");
        const transfer_result all = co_await wait(p.server.async_write_all(bytes_of("x")));
        expect_closed(all.error(), "write_all");
        const transfer_result nothing = co_await wait(p.server.async_write_all({}));
        expect_closed(nothing.error(), "write_all of nothing");
        const auto end = co_await wait(p.server.async_shutdown());
        expect_closed(end.error(), "shutdown");
        const auto shaken = co_await wait(p.server.async_handshake());
        expect_closed(shaken.error(), "handshake");
        p.server.close();
        expect_closed(errc::closed, "close");
    });
    agent.join();
}

// --- rows of the cancel table ---

struct tls_row {
    tls_pair p;
    std::string b = std::string(4, 0);
    tls_stream& s = p.server;
    tls_stream& far = p.client;
    explicit tls_row(tls_pair of = shaken_by_threads()) : p(std::move(of)) {}
    void complete() { EXPECT_TRUE(far.write_all(bytes_of("1234"))); }
    void close() { s.close(); }
    int number() const { return s.under().native_handle(); }
};

// What the far end does meanwhile; it ends with the row.
class beside {
public:
    template <class F>
    void begin(F f) {
        thread_ = std::thread(std::move(f));
    }
    void end() {
        if (thread_.joinable()) thread_.join();
    }
    ~beside() { end(); }

private:
    std::thread thread_;
};

template <bool is_client>
struct handshake_row : tls_row {
    beside other;
    handshake_row() : tls_row(unshaken()) {}
    ~handshake_row() {
        near().close();
        other.end();
    }
    tls_stream& near() { return is_client ? p.client : p.server; }
    auto operation() { return near().async_handshake(); }
    void complete() {
        other.begin([this] { static_cast<void>((is_client ? p.server : p.client).handshake()); });
    }
    void close() { near().close(); }
    int number() { return near().under().native_handle(); }
};

struct tls_read_row : tls_row {
    auto operation() { return s.async_read(room(b)); }
};
struct tls_read_exact_row : tls_row {
    static constexpr bool has_a_part = true;
    std::string part = std::string(8, 0);
    tls_read_exact_row() {
        EXPECT_TRUE(far.write_all(bytes_of("part")));
        until_readable(number());
    }
    auto operation() { return s.async_read_exact(std::span(room(part)).first(taken == 0 ? 8 : 4)); }
    const char* left(const ending& cut) {
        taken = cut.bytes;
        return cut.bytes == 4 && part.compare(0, 4, "part") == 0 ? nullptr : "the part is not told";
    }
    std::size_t taken = 0;
};

// There is no room, neither in the socket nor here.
struct tls_full_row : tls_row {
    std::string much = std::string(1 << 20, 'x');
    std::size_t filled = 0;
    beside other;
    explicit tls_full_row(tls_pair of = shaken_by_threads()) : tls_row(std::move(of)) {
        for (const int socket : {s.under().native_handle(), far.under().native_handle()})
            for (const int name : {SO_SNDBUF, SO_RCVBUF}) {
                constexpr int bytes = 1 << 16;
                ::setsockopt(socket, SOL_SOCKET, name, &bytes, sizeof bytes);
            }
        // For a while the bytes in a TCP socket move on to the far end's buffer, longer on a busy
        // machine.
        const auto end = steady_now() + cancel_patience;
        for (int in_vain = 0; in_vain < 3;) {
            const timeout_scope soon(1ms);
            const transfer_result t = s.write_all(bytes_of(much));
            filled += t.bytes();
            const bool moves = t.bytes() != 0 || (is_under_way() && steady_now() < end);
            in_vain = moves ? 0 : in_vain + 1;
        }
    }
    // The far end has not acknowledged everything that was sent.
    bool is_under_way() {
        ::tcp_info i{};
        ::socklen_t bytes = sizeof i;
        return ::getsockopt(s.under().native_handle(), IPPROTO_TCP, TCP_INFO, &i, &bytes) == 0 &&
               i.tcpi_unacked != 0;
    }
    ~tls_full_row() {
        s.close();
        other.end();
    }
    // All that comes, until the end.
    void complete() {
        other.begin([this] {
            std::string some(1 << 16, 0);
            while (far.read(room(some)).value_or(0) != 0) {
            }
        });
    }
};
struct tls_write_row : tls_full_row {
    using tls_full_row::tls_full_row;
    auto operation() { return s.async_write_all(bytes_of(much).first(100'000)); }
    // What was taken over is sent before later writes.
    const char* left(const ending& cut) {
        if (number() == -1) return nullptr;
        std::string all(filled + cut.bytes + 1, 0);
        other.begin([&] { static_cast<void>(far.read_exact(room(all))); });
        EXPECT_TRUE(s.write_all(bytes_of("!")));
        other.end();
        if (all.find('!') != all.size() - 1) return "what is told to be written is not what was";
        return nullptr;
    }
};
struct tls_write_in_kernel_row : tls_write_row {
    tls_write_in_kernel_row() : tls_write_row(shaken_by_threads(unshaken_in_kernel())) {}
};
struct tls_shutdown_row : tls_full_row {
    auto operation() { return s.async_shutdown(); }
};

constexpr cancel_row tls_cancel_rows[] = {
    {"tls_handshake_client", make_scene<handshake_row<true>>},
    {"tls_handshake_server", make_scene<handshake_row<false>>},
    {"tls_read", make_scene<tls_read_row>},
    {"tls_read_exact", make_scene<tls_read_exact_row>},
    {"tls_write_all", make_scene<tls_write_row>},
    {"tls_write_all_in_kernel", make_scene<tls_write_in_kernel_row>},
    {"tls_shutdown", make_scene<tls_shutdown_row>},
};
INSTANTIATE_CANCEL_TABLE(tls_cancel_rows);

}  // namespace
}  // namespace weft::testing
