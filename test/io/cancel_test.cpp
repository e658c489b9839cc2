// The rows of the cancel table (cancel_table.hpp): what io has that can wait.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "test/io/cancel_table.hpp"
#include "test/io/plain_peer.hpp"
#include "test/io/scratch_folder.hpp"
#include "weft/io/directory.hpp"
#include "weft/io/directory_watch.hpp"
#include "weft/io/file.hpp"
#include "weft/io/paths.hpp"
#include "weft/io/process.hpp"
#include "weft/io/relay.hpp"
#include "weft/io/resolver.hpp"
#include "weft/io/signal_set.hpp"
#include "weft/io/standard_streams.hpp"
#include "weft/io/terminal.hpp"
#include "weft/io/unix_datagram.hpp"
#include "weft/io/unix_seqpacket.hpp"
#include "weft/sched/blocking.hpp"

namespace weft::testing {
namespace {

struct tcp_pair_row {
    tcp_stream s;
    plain_fd far;
    std::string b = std::string(4, 0);
    tcp_pair_row() { std::tie(s, far) = half_of_tcp(); }
    void complete() { send_plainly(far, "1234"); }
    void close() { s.close(); }
    int number() const { return s.native_handle(); }
};
struct unix_pair_row {
    unix_stream s;
    plain_fd far;
    std::string b = std::string(4, 0);
    unix_pair_row() { std::tie(s, far) = half_of_unix(); }
    void complete() { send_plainly(far, "1234"); }
    void close() { s.close(); }
    int number() const { return s.native_handle(); }
};

struct tcp_read_row : tcp_pair_row {
    auto operation() { return s.async_read(room(b)); }
};
struct unix_read_row : unix_pair_row {
    auto operation() { return s.async_read(room(b)); }
};
struct read_borrowed_row : tcp_pair_row {
    auto operation() { return s.async_read_borrowed(); }
};
// It has a part already.
struct read_exact_row : tcp_pair_row {
    static constexpr bool has_a_part = true;
    std::string part = std::string(8, 0);
    read_exact_row() {
        send_plainly(far, "part");
        until_readable(s.native_handle());
    }
    auto operation() { return s.async_read_exact(std::span(room(part)).first(taken == 0 ? 8 : 4)); }
    const char* left(const ending& cut) {
        taken = cut.bytes;
        return cut.bytes == 4 && part.compare(0, 4, "part") == 0 ? nullptr : "the part is not told";
    }
    std::size_t taken = 0;
};
struct read_until_row : tcp_pair_row {
    std::string text;
    read_until_row() {
        send_plainly(far, "part");
        until_readable(s.native_handle());
    }
    auto operation() { return s.async_read_until(text, "4"); }
    const char* left(const ending&) {
        return text == "part" ? nullptr : "the text is not what has come";
    }
};

// The room is full; the far end gets what is reported as written.
template <class Pair>
struct full_row : Pair {
    std::string much = std::string(4 << 20, 'x');
    std::size_t filled = 0;
    full_row() {
        const std::string b(4096, 'f');
        const int to = this->s.native_handle();
        // For a while the bytes in a TCP socket move on to the far end's buffer, a long while on a
        // busy machine, and there is room when the far end has acknowledged them, some 40 ms later.
        constexpr bool goes_over = std::is_same_v<Pair, tcp_pair_row>;
        if constexpr (goes_over)
            for (const int number : {to, int{this->far}})
                for (const int name : {SO_SNDBUF, SO_RCVBUF}) {
                    constexpr int bytes = 1 << 16;
                    ::setsockopt(number, SOL_SOCKET, name, &bytes, sizeof bytes);
                }
        const auto end = steady_now() + cancel_patience;
        for (int in_vain = 0; in_vain < 3; ++in_vain) {
            if (goes_over && is_under_way() && steady_now() < end) in_vain = 0;
            for (::ssize_t n; (n = ::send(to, b.data(), b.size(), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;
                 in_vain = 0)
                filled += static_cast<std::size_t>(n);
            std::this_thread::sleep_for(1ms);
        }
    }
    // The far end has not acknowledged everything that was sent.
    bool is_under_way() {
        ::tcp_info i{};
        ::socklen_t bytes = sizeof i;
        return ::getsockopt(this->s.native_handle(), IPPROTO_TCP, TCP_INFO, &i, &bytes) == 0 &&
               i.tcpi_unacked != 0;
    }
    // Afterwards the buffer is empty for a short time.
    std::size_t drain() {
        std::string b(1 << 20, 0);
        std::size_t all = 0;
        for (;;) {
            const ::ssize_t n = ::recv(this->far, b.data(), b.size(), MSG_DONTWAIT);
            if (n <= 0) return all;
            all += static_cast<std::size_t>(n);
        }
    }
    void complete() { drain(); }
    const char* left(const ending& cut) {
        std::size_t all = 0;
        // On its way it takes a little while.
        const auto end = steady_now() + crew::patience;
        while (all < filled + cut.bytes && steady_now() < end) all += drain();
        return all == filled + cut.bytes ? nullptr : "what is told to be written is not what was";
    }
};
struct unix_write_row : full_row<unix_pair_row> {
    auto operation() { return s.async_write(bytes_of(much).first(100)); }
};
struct tcp_write_row : full_row<tcp_pair_row> {
    auto operation() { return s.async_write(bytes_of(much).first(100)); }
};
struct write_all_row : full_row<unix_pair_row> {
    auto operation() { return s.async_write_all(bytes_of(much).first(100'000)); }
};

struct close_gracefully_row : tcp_pair_row {
    static constexpr bool ends_its_object = true;
    auto operation() { return s.async_close_gracefully(never); }
    void complete() { far.close(); }
    const char* left(const ending&) { return s.native_handle() == -1 ? nullptr : "it is open"; }
};

struct tcp_accept_row {
    tcp_listener l = any_listener();
    std::vector<plain_fd> peers;
    auto operation() { return l.async_accept(); }
    void complete() { peers.push_back(dialled(l.local_endpoint())); }
    void close() { l.close(); }
    int number() const { return l.native_handle(); }
};
struct multishot_accept_row : tcp_accept_row {
    multishot_accept_row() { l = tcp_listener::bind("127.0.0.1:0", {.multishot = true}).value(); }
};
struct unix_accept_row {
    unix_listener l = unix_listener::bind(local_name()).value();
    std::vector<plain_fd> peers;
    auto operation() { return l.async_accept(); }
    void complete() { peers.push_back(dialled(l.local_endpoint())); }
    void close() { l.close(); }
    int number() const { return l.native_handle(); }
};

// No thread accepts, and there is no room to wait in.
struct full_tcp_row {
    static constexpr bool ends_its_object = true;  // what is sent again comes after a second
    tcp_listener l = tcp_listener::bind("127.0.0.1:0", {.backlog = 1}).value();
    std::vector<plain_fd> fill;
    full_tcp_row() {
        const endpoint to = l.local_endpoint();
        for (int i = 0; i < 4; ++i) {
            fill.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            static_cast<void>(::connect(fill.back(), to.data(), to.size()));
        }
    }
    void complete() { l.close(); }
};
struct tcp_connect_row : full_tcp_row {
    auto operation() { return tcp_stream::async_connect(l.local_endpoint()); }
};
struct connect_fast_row : full_tcp_row {
    auto operation() { return tcp_stream::async_connect_fast(l.local_endpoint()); }
};
struct connect_by_name_row : full_tcp_row {
    auto operation() { return tcp_stream::async_connect(l.local_endpoint().to_string()); }
};

struct udp_row {
    udp_socket s = udp_socket::bind("127.0.0.1:0").value();
    plain_fd far{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    std::string b = std::string(16, 0);
    void complete() {
        const endpoint to = s.local_endpoint();
        EXPECT_EQ(::sendto(far, "x", 1, 0, to.data(), to.size()), 1);
    }
    void close() { s.close(); }
    int number() const { return s.native_handle(); }
};
struct recv_row : udp_row {
    auto operation() { return s.async_recv(room(b)); }
};
struct recv_from_row : udp_row {
    auto operation() { return s.async_recv_from(room(b)); }
};

struct pipe_row {
    pipe p = pipe::open().value();
    std::string b = std::string(1 << 16, 0);
};
struct pipe_read_row : pipe_row {
    auto operation() { return p.reader.async_read(room(b)); }
    void complete() { EXPECT_EQ(::write(p.writer.native_handle(), "x", 1), 1); }
    void close() { p.reader.close(); }
    int number() const { return p.reader.native_handle(); }
};
struct pipe_write_row : pipe_row {
    pipe_write_row() {
        while (::write(p.writer.native_handle(), b.data(), b.size()) > 0) {
        }
    }
    auto operation() { return p.writer.async_write_all(bytes_of(b).first(5000)); }
    void complete() {
        std::string all(1 << 17, 0);
        EXPECT_GT(::read(p.reader.native_handle(), all.data(), all.size()), 0);
    }
    void close() { p.writer.close(); }
    int number() const { return p.writer.native_handle(); }
};

struct watch_row : unix_pair_row {
    fd_watch w{s.native_handle()};
    auto operation() { return w.async_wait(fd_events::read); }
};
struct foreign_watch_row {
    plain_fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    fd_watch w{event};
    auto operation() { return w.async_wait(fd_events::read); }
    void complete() { EXPECT_EQ(::eventfd_write(event, 1), 0); }
};

// No other test of this file has this signal.
struct signal_row {
    static constexpr bool there_is_one = true;
    signal_set set = signal_set::open({SIGRTMIN + 5}).value();
    auto operation() { return set.async_wait(); }
    void complete() { EXPECT_EQ(::kill(::getpid(), SIGRTMIN + 5), 0); }
    void close() { set.close(); }
};

struct process_row {
    process p = process::spawn({"cat"}, {.in = child_io::piped}).value();
    auto operation() { return p.async_wait(); }
    void complete() { p.in().close(); }
};

// A pool with one thread, which is occupied.
class occupied_pool {
public:
    occupied_pool() {
        EXPECT_TRUE(pool.post([this] {
            begun_ = true;
            while (!over_) std::this_thread::yield();
        }));
        while (!begun_) std::this_thread::yield();
    }
    ~occupied_pool() {
        over_ = true;
        // A call runs although its waiter has been cancelled.
        while (pool.waiting_count() != 0) std::this_thread::yield();
    }
    void end() { over_ = true; }

private:
    std::atomic<bool> begun_{false};
    std::atomic<bool> over_{false};

public:
    blocking_pool pool{{.max_thread_count = 1}};  // ends before what it uses
};
struct file_open_row {
    occupied_pool busy;
    auto operation() { return file::async_open("/dev/null", {.pool = &busy.pool}); }
    void complete() { busy.end(); }
};
struct file_size_row {
    occupied_pool busy;
    file f =
        file::adopt(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC), {.pool = &busy.pool}).value();
    auto operation() { return f.async_size(); }
    void complete() { busy.end(); }
    void close() {
        f.close();
        busy.end();
    }
    int number() const { return f.native_handle(); }
};
struct file_resize_row {
    occupied_pool busy;
    scratch_folder folder;
    file f = file::open(folder / "f", {.write = true, .create = true}).value();
    file g = file::adopt(::dup(f.native_handle()), {.pool = &busy.pool}).value();
    auto operation() { return g.async_resize(5); }
    void complete() { busy.end(); }
    // The thread that reaches a cancelled call does not make it.
    const char* left(const ending&) {
        return f.size().value() == 0 ? nullptr : "it was made all the same";
    }
    void close() {
        g.close();
        busy.end();
    }
    int number() const { return g.native_handle(); }
};
// More than is looked up in memory before the call goes to a thread.
struct pooled_file_row {
    occupied_pool busy;
    scratch_folder folder;
    std::string b = std::string((1 << 20) + 1, 'b');
    file whole = file::open(folder / "f", {.write = true, .create = true}).value();
    file f = file::adopt(::dup(whole.native_handle()), {.pool = &busy.pool}).value();
    void complete() { busy.end(); }
    void close() {
        f.close();
        busy.end();
    }
    int number() const { return f.native_handle(); }
};
struct full_file_row : pooled_file_row {
    full_file_row() { EXPECT_TRUE(whole.write_all_at(bytes_of(b), 0)); }
    const char* left(const ending&) {
        return f.position() == 0 ? nullptr : "the position has moved by what was not read";
    }
};
struct file_read_row : full_file_row {
    auto operation() { return f.async_read(room(b)); }
};
struct file_read_exact_row : full_file_row {
    auto operation() { return f.async_read_exact(room(b)); }
};
struct file_read_list_row : full_file_row {
    std::array<std::span<std::byte>, 2> list{room(b).first(7), room(b).subspan(7)};
    auto operation() { return f.async_read_exact_at(list, 0); }
};
struct empty_file_row : pooled_file_row {
    const char* left(const ending&) {
        if (f.position() != 0) return "the position has moved by what was not written";
        return whole.size().value() == 0 ? nullptr : "it was written all the same";
    }
};
struct file_write_row : empty_file_row {
    auto operation() { return f.async_write_all(bytes_of(b)); }
};
struct file_write_list_row : empty_file_row {
    std::array<std::span<const std::byte>, 2> list{bytes_of(b).first(7), bytes_of(b).subspan(7)};
    auto operation() { return f.async_write_all_at(list, 0); }
};
struct file_sync_row : pooled_file_row {
    auto operation() { return f.async_sync(); }
};

// Each thread of the pool that all share is occupied.
class occupied_default_pool {
public:
    occupied_default_pool() {
        const std::size_t all = blocking_pool_options{}.max_thread_count;
        for (std::size_t i = 0; i < all; ++i)
            EXPECT_TRUE(default_blocking_pool().post([s = state_] {
                ++s->begun;
                s->over.wait(false);
            }));
        while (state_->begun != all) std::this_thread::yield();
    }
    occupied_default_pool(const occupied_default_pool&) = delete;
    ~occupied_default_pool() { end(); }
    void end() {
        state_->over = true;
        state_->over.notify_all();
    }

private:
    struct state {
        std::atomic<std::size_t> begun{0};
        std::atomic<bool> over{false};
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();
};
struct path_row {
    static constexpr bool there_is_one = true;
    scratch_folder folder;
    occupied_default_pool busy;
    path_row() { put_file(folder / "f", "text"); }
    void complete() { busy.end(); }
    bool has(const char* name) const { return ::access((folder / name).c_str(), F_OK) == 0; }
};
struct stat_row : path_row {
    auto operation() { return async_stat(folder / "f"); }
};
struct rename_row : path_row {
    auto operation() { return async_rename(folder / "f", folder / "g"); }
    const char* left(const ending&) { return has("f") ? nullptr : "it was made all the same"; }
};
struct remove_row : path_row {
    auto operation() { return async_remove(folder / "f"); }
    const char* left(const ending&) { return has("f") ? nullptr : "it was made all the same"; }
};
struct make_directory_row : path_row {
    auto operation() { return async_make_directory(folder / "d"); }
    const char* left(const ending&) { return has("d") ? "it was made all the same" : nullptr; }
};
struct directory_open_row : path_row {
    auto operation() { return directory::async_open(folder.path()); }
};
struct directory_read_row {
    static constexpr bool there_is_one = true;
    scratch_folder folder;
    directory d = directory::open(folder.path()).value();
    occupied_default_pool busy;
    auto operation() { return d.async_read(); }
    void complete() { busy.end(); }
    void close() {
        d.close();
        busy.end();
    }
    int number() const { return d.native_handle(); }
};
struct resolve_row {
    occupied_pool busy;
    resolver r{{.pool = &busy.pool, .by = resolver_backend::getaddrinfo}};
    auto operation() { return r.async_resolve("localhost", 80); }
    void complete() { busy.end(); }
};

// Of several buffers.
template <class Pair>
struct read_list_row : Pair {
    std::string more = std::string(4, 0);
    std::array<std::span<std::byte>, 2> list{std::span(room(this->b)).first(1), room(more)};
    auto operation() { return this->s.async_read(list); }
};
struct write_list_row : full_row<unix_pair_row> {
    std::array<std::span<const std::byte>, 2> list{bytes_of(much).first(50'000),
                                                   bytes_of(much).last(50'000)};
    auto operation() { return s.async_write_all(list); }
};
struct pipe_read_list_row : pipe_read_row {
    std::array<std::span<std::byte>, 2> list{std::span(room(b)).first(7),
                                             std::span(room(b)).last(7)};
    auto operation() { return p.reader.async_read(list); }
};
struct pipe_write_list_row : pipe_write_row {
    std::array<std::span<const std::byte>, 2> list{bytes_of(b).first(3000), bytes_of(b).last(2000)};
    auto operation() { return p.writer.async_write_all(list); }
};
struct pipe_read_borrowed_row : pipe_read_row {
    auto operation() { return p.reader.async_read_borrowed(); }
};

// File descriptors travel with the bytes, and none of them leaks.
struct recv_numbers_row {
    unix_stream s;
    unix_stream far;
    std::string b = std::string(4, 0);
    std::array<owned_number, 2> got;
    recv_numbers_row() { std::tie(s, far) = unix_stream::pair().value(); }
    auto operation() { return s.async_recv_numbers(room(b), got); }
    void complete() {
        const int numbers[] = {s.native_handle(), far.native_handle()};
        EXPECT_FALSE(far.send_numbers(bytes_of("x"), numbers).error());
    }
    const char* left(const ending&) { return got[0].get() == -1 ? nullptr : "a number has come"; }
    void close() { s.close(); }
    int number() const { return s.native_handle(); }
};
struct send_numbers_row : full_row<unix_pair_row> {
    std::array<int, 1> numbers{far};
    auto operation() { return s.async_send_numbers(bytes_of(much).first(100), numbers); }
};

// Nothing comes from the one, or there is no room in the other.
struct relay_read_row : unix_pair_row {
    unix_pair_row to;
    auto operation() { return async_relay(s, to.s, 4); }
};
struct relay_write_row : full_row<unix_pair_row> {
    static constexpr bool has_a_part = true;
    unix_pair_row from;
    relay_write_row() { from.complete(); }
    auto operation() { return async_relay(from.s, s, 4); }
    void complete() {
        from.complete();  // what a cut has taken is in its rest
        drain();
    }
};

struct directory_watch_row {
    scratch_folder folder;
    directory_watch w = directory_watch::open().value();
    directory_watch_row() { EXPECT_TRUE(w.add(folder.path(), file_events::created)); }
    auto operation() { return w.async_wait(); }
    void complete() { put_file(folder / "new", ""); }
    void close() { w.close(); }
    int number() const { return w.native_handle(); }
};

template <class Pair>
struct send_file_row : full_row<Pair> {
    file from = file::adopt(file_of(this->much)).value();
    auto operation() { return this->s.async_send_file(from, 0, 100'000); }
};

// Messages of the machine.
struct datagram_pair_row {
    unix_datagram s;
    unix_datagram far;
    std::string b = std::string(1000, 'd');
    datagram_pair_row() { std::tie(s, far) = unix_datagram::pair().value(); }
    void complete() { EXPECT_EQ(::send(far.native_handle(), "x", 1, MSG_NOSIGNAL), 1); }
    void close() { s.close(); }
    int number() const { return s.native_handle(); }
};
struct seqpacket_pair_row {
    unix_seqpacket s;
    unix_seqpacket far;
    std::string b = std::string(1000, 'm');
    seqpacket_pair_row() { std::tie(s, far) = unix_seqpacket::pair().value(); }
    void complete() { EXPECT_EQ(::send(far.native_handle(), "x", 1, MSG_NOSIGNAL), 1); }
    void close() { s.close(); }
    int number() const { return s.native_handle(); }
};
template <class Pair>
struct message_recv_row : Pair {
    auto operation() { return this->s.async_recv(room(this->b)); }
};
struct datagram_recv_from_row : datagram_pair_row {
    auto operation() { return s.async_recv_from(room(b)); }
};
template <class Pair>
struct message_full_row : Pair {
    int filled = 0;
    message_full_row() {
        while (::send(this->s.native_handle(), this->b.data(), 1000, MSG_DONTWAIT | MSG_NOSIGNAL) >
               0)
            ++filled;
    }
    int drain() {
        std::string all(2000, 0);
        int n = 0;
        while (::recv(this->far.native_handle(), all.data(), all.size(), MSG_DONTWAIT) > 0) ++n;
        return n;
    }
    void complete() { drain(); }
};
template <class Pair>
struct message_send_row : message_full_row<Pair> {
    auto operation() { return this->s.async_send(bytes_of(this->b)); }
    const char* left(const ending&) {
        return this->drain() == this->filled ? nullptr : "what was not told to be sent was";
    }
};

// In batches.
template <class Row>
struct recv_many_row : Row {
    std::array<std::string, 3> rooms{std::string(64, 0), std::string(64, 0), std::string(64, 0)};
    std::array<incoming_datagram, 3> all{};
    recv_many_row() {
        for (std::size_t i = 0; i < 3; ++i) all[i].into = room(rooms[i]);
    }
    auto operation() { return this->s.async_recv_many(all); }
};
struct recv_segments_row : recv_many_row<udp_row> {
    recv_segments_row() {
        s = udp_socket::bind("127.0.0.1:0", {.coalesce = true, .details = true}).value();
    }
};
struct send_many_row : message_full_row<datagram_pair_row> {
    std::array<outgoing_datagram, 3> all{};
    send_many_row() {
        for (outgoing_datagram& o : all) o.bytes = bytes_of(b);
        // Some of them find room.
        std::string one(2000, 0);
        for (int i = 0; i < 2; ++i, --filled)
            EXPECT_GT(::recv(far.native_handle(), one.data(), one.size(), MSG_DONTWAIT), 0);
    }
    auto operation() { return s.async_send_many(all); }
    const char* left(const ending& cut) {
        return drain() == filled + static_cast<int>(cut.bytes)
                   ? nullptr
                   : "what is told to be sent is not what was";
    }
};
// Each segment is sent by itself; a part of a segmented message may have been sent.
struct send_segments_row : message_full_row<datagram_pair_row> {
    std::array<outgoing_datagram, 1> all{};
    send_segments_row() { all[0] = {.bytes = bytes_of(b), .segment = 100}; }
    auto operation() { return s.async_send_many(all); }
};

struct seqpacket_accept_row {
    unix_seqpacket_listener l = unix_seqpacket_listener::bind(local_name()).value();
    std::vector<plain_fd> peers;
    auto operation() { return l.async_accept(); }
    void complete() { peers.push_back(dialled(l.local_endpoint(), 0, SOCK_SEQPACKET)); }
    void close() { l.close(); }
    int number() const { return l.native_handle(); }
};
// A listener that the program was given.
struct adopted_accept_row : tcp_accept_row {
    adopted_accept_row() { l = tcp_listener::adopt(::dup(l.native_handle())).value(); }
};
struct adopted_multishot_accept_row : tcp_accept_row {
    adopted_multishot_accept_row() {
        l = tcp_listener::adopt(::dup(l.native_handle()), {.multishot = true}).value();
    }
};

// There is no room to wait in, until the far end accepts.
template <class Stream, class Listener, int type>
struct full_local_row {
    endpoint to = local_name();
    Listener l = Listener::bind(to, {.backlog = 1}).value();
    std::vector<plain_fd> fill = dial_until_full(to, type);
    std::vector<plain_fd> accepted;
    auto operation() { return Stream::async_connect(to); }
    void complete() {
        for (std::size_t i = 0; i < fill.size(); ++i) {
            accepted.emplace_back(::accept(l.native_handle(), nullptr, nullptr));
            EXPECT_GE(accepted.back(), 0);
        }
    }
};
using unix_connect_row = full_local_row<unix_stream, unix_listener, SOCK_STREAM>;
using seqpacket_connect_row =
    full_local_row<unix_seqpacket, unix_seqpacket_listener, SOCK_SEQPACKET>;

// The program has one of each.
struct standard_input_row {
    static constexpr bool there_is_one = true;
    pipe p = pipe::open().value();
    in_place_of zero{0, ::dup(p.reader.native_handle())};
    pipe_reader in = standard_input().value();
    std::string b = std::string(16, 0);
    auto operation() { return in.async_read(room(b)); }
    void complete() { EXPECT_EQ(::write(p.writer.native_handle(), "x", 1), 1); }
    void close() { in.close(); }
    int number() const { return in.native_handle(); }
};
struct standard_error_row {
    static constexpr bool there_is_one = true;
    pipe p = pipe::open().value();
    in_place_of two{2, ::dup(p.writer.native_handle())};
    pipe_writer out = standard_error().value();
    std::string b = std::string(1 << 16, 0);
    standard_error_row() {
        while (::write(p.writer.native_handle(), b.data(), b.size()) > 0) {
        }
    }
    auto operation() { return out.async_write_all(bytes_of(b).first(5000)); }
    void complete() {
        std::string all(1 << 17, 0);
        EXPECT_GT(::read(p.reader.native_handle(), all.data(), all.size()), 0);
    }
    void close() { out.close(); }
    int number() const { return out.native_handle(); }
};

// A serial line whose far side sends nothing, or takes nothing.
struct serial_row {
    plain_fd far;
    serial_line line;
    std::string b = std::string(5000, 's');
    serial_row() {
        int master = -1;
        int slave = -1;
        char path[100];
        EXPECT_EQ(::openpty(&master, &slave, path, nullptr, nullptr), 0);
        far = plain_fd(master);
        ::fcntl(far, F_SETFL, O_NONBLOCK);
        line = serial_line::open(path).value();
        ::close(slave);
    }
};
struct serial_read_row : serial_row {
    auto operation() { return line.reader.async_read(room(b)); }
    void complete() { EXPECT_EQ(::write(far, "x", 1), 1); }
    void close() { line.reader.close(); }
    int number() const { return line.reader.native_handle(); }
};
struct serial_write_row : serial_row {
    serial_write_row() {
        for (int in_vain = 0; in_vain < 3; ++in_vain) {
            while (::write(line.writer.native_handle(), b.data(), b.size()) > 0) in_vain = 0;
            std::this_thread::sleep_for(1ms);
        }
    }
    auto operation() { return line.writer.async_write_all(bytes_of(b)); }
    void complete() {
        std::string all(1 << 16, 0);
        for (int in_vain = 0; in_vain < 3; ++in_vain) {
            while (::read(far, all.data(), all.size()) > 0) in_vain = 0;
            std::this_thread::sleep_for(1ms);
        }
    }
    void close() { line.writer.close(); }
    int number() const { return line.writer.native_handle(); }
};

constexpr cancel_row cancel_rows[] = {
    {"tcp_read", make_scene<tcp_read_row>},
    {"unix_read", make_scene<unix_read_row>},
    {"read_borrowed", make_scene<read_borrowed_row>},
    {"read_exact", make_scene<read_exact_row>},
    {"read_until", make_scene<read_until_row>},
    {"tcp_write", make_scene<tcp_write_row>},
    {"unix_write", make_scene<unix_write_row>},
    {"write_all", make_scene<write_all_row>},
    {"close_gracefully", make_scene<close_gracefully_row>},
    {"tcp_accept", make_scene<tcp_accept_row>},
    {"multishot_accept", make_scene<multishot_accept_row>},
    {"unix_accept", make_scene<unix_accept_row>},
    {"tcp_connect", make_scene<tcp_connect_row>},
    {"connect_fast", make_scene<connect_fast_row>},
    {"connect_by_name", make_scene<connect_by_name_row>},
    {"recv", make_scene<recv_row>},
    {"recv_from", make_scene<recv_from_row>},
    {"pipe_read", make_scene<pipe_read_row>},
    {"pipe_write_all", make_scene<pipe_write_row>},
    {"fd_watch", make_scene<watch_row>},
    {"foreign_fd_watch", make_scene<foreign_watch_row>},
    {"signal_wait", make_scene<signal_row>},
    {"process_wait", make_scene<process_row>},
    {"file_open", make_scene<file_open_row>},
    {"file_size", make_scene<file_size_row>},
    {"resolve", make_scene<resolve_row>},
    {"tcp_read_list", make_scene<read_list_row<tcp_pair_row>>},
    {"unix_read_list", make_scene<read_list_row<unix_pair_row>>},
    {"write_list", make_scene<write_list_row>},
    {"pipe_read_list", make_scene<pipe_read_list_row>},
    {"pipe_write_list", make_scene<pipe_write_list_row>},
    {"pipe_read_borrowed", make_scene<pipe_read_borrowed_row>},
    {"tcp_send_file", make_scene<send_file_row<tcp_pair_row>>},
    {"unix_send_file", make_scene<send_file_row<unix_pair_row>>},
    {"datagram_recv", make_scene<message_recv_row<datagram_pair_row>>},
    {"datagram_recv_from", make_scene<datagram_recv_from_row>},
    {"datagram_send", make_scene<message_send_row<datagram_pair_row>>},
    {"recv_many", make_scene<recv_many_row<udp_row>>},
    {"recv_segments", make_scene<recv_segments_row>},
    {"local_recv_many", make_scene<recv_many_row<datagram_pair_row>>},
    {"send_many", make_scene<send_many_row>},
    {"send_segments", make_scene<send_segments_row>},
    {"seqpacket_recv", make_scene<message_recv_row<seqpacket_pair_row>>},
    {"seqpacket_send", make_scene<message_send_row<seqpacket_pair_row>>},
    {"seqpacket_accept", make_scene<seqpacket_accept_row>},
    {"seqpacket_connect", make_scene<seqpacket_connect_row>},
    {"unix_connect", make_scene<unix_connect_row>},
    {"adopted_accept", make_scene<adopted_accept_row>},
    {"adopted_multishot_accept", make_scene<adopted_multishot_accept_row>},
    {"standard_input", make_scene<standard_input_row>},
    {"standard_error", make_scene<standard_error_row>},
    {"file_resize", make_scene<file_resize_row>},
    {"file_read", make_scene<file_read_row>, true},
    {"file_read_exact", make_scene<file_read_exact_row>, true},
    {"file_read_list", make_scene<file_read_list_row>, true},
    {"file_write_all", make_scene<file_write_row>, true},
    {"file_write_list", make_scene<file_write_list_row>, true},
    {"file_sync", make_scene<file_sync_row>, true},
    {"stat", make_scene<stat_row>},
    {"rename", make_scene<rename_row>},
    {"remove", make_scene<remove_row>},
    {"make_directory", make_scene<make_directory_row>},
    {"directory_open", make_scene<directory_open_row>},
    {"directory_read", make_scene<directory_read_row>},
    {"recv_numbers", make_scene<recv_numbers_row>},
    {"send_numbers", make_scene<send_numbers_row>},
    {"relay_read", make_scene<relay_read_row>},
    {"relay_write", make_scene<relay_write_row>},
    {"directory_watch", make_scene<directory_watch_row>},
    {"serial_read", make_scene<serial_read_row>},
    {"serial_write", make_scene<serial_write_row>},
};
INSTANTIATE_CANCEL_TABLE(cancel_rows);

}  // namespace
}  // namespace weft::testing
