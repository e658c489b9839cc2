#include "bench/net/load_client.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "bench/net/sockets.hpp"
#include "bench/net/waits.hpp"
#include "examples/echo/latency.hpp"
#include "examples/echo/random.hpp"

namespace bench::net {

namespace {

using nanoseconds = std::uint64_t;

constexpr std::size_t chunk_bytes = 64 * 1024;    // most that one send or recv moves
constexpr nanoseconds patience = 10'000'000'000;  // for messages still in flight at the end
constexpr nanoseconds never = ~nanoseconds{0};
constexpr unsigned quick_ports = 12'000;  // of an address; the kernel looks long for the others

nanoseconds now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<nanoseconds>(t.tv_sec) * 1'000'000'000 + static_cast<nanoseconds>(t.tv_nsec);
}

nanoseconds of(double seconds) { return static_cast<nanoseconds>(seconds * 1e9); }

// Invariants:
// I1  A message is in flight while to_recv > 0; to_send <= to_recv.
// I2  taken <= due, and taken < due only while a message is in flight. In a closed loop both are 0.
struct connection {
    connection(int socket, std::uint64_t seed) : fd(socket), out(seed), in(seed) {}

    int fd;  // -1 when lost
    std::size_t to_send = 0;
    std::size_t to_recv = 0;
    nanoseconds started = 0;  // when the message in flight was sent, or was to be
    std::uint64_t due = 0;    // messages whose time has come
    std::uint64_t taken = 0;  // of these, sent or in flight
    echo::byte_stream out, in;
};

class load_client {
public:
    explicit load_client(const load_options& options);
    ~load_client();
    load_client(const load_client&) = delete;
    load_client& operator=(const load_client&) = delete;

    load_report run();
    load_report run_once();

private:
    bool open_loop() const noexcept { return options_.rate > 0; }
    usage look() const;
    int connected_socket();
    bool take_next_source() noexcept;  // false: there are no more
    void open_all();
    void turn_until(nanoseconds end);
    void exchange_one_each();
    void turn(int wait_ms);
    nanoseconds intended(const connection& c, std::uint64_t message) const noexcept;
    void send_what_is_due(nanoseconds time);
    void start(connection& c, nanoseconds when);
    void send_some(connection& c);
    void recv_some(connection& c, bool ends);
    void verify(connection& c, std::size_t count);
    void message_is_back(connection& c);
    void lose(connection& c, const char* what, const char* why);
    void count(nanoseconds latency);
    void finish();

    const load_options options_;
    const double interval_ns_;  // between two messages of an open loop
    const int epoll_fd_;
    const wait_counter of_server_;
    std::vector<connection> connections_;
    std::vector<char> sent_, received_, expected_;  // scratch
    sockaddr_in source_{};                          // where connections come from
    bool bind_source_ = false;

    nanoseconds began_ = 0;       // an open loop's time of its first message
    std::uint64_t next_due_ = 0;  // its next message, over all connections
    nanoseconds measured_from_ = never, measured_until_ = never;
    bool ending_ = false;  // no new message
    std::size_t alive_ = 0, under_way_ = 0;
    echo::latency latency_;
    nanoseconds longest_ = 0;
    load_report report_;
};

load_client::load_client(const load_options& options)
    : options_(options),
      interval_ns_(options.rate > 0 ? 1e9 / options.rate : 0),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      of_server_(options.waits),
      sent_(chunk_bytes),
      received_(chunk_bytes),
      expected_(chunk_bytes) {
    if (epoll_fd_ < 0) die("epoll_create1");
    source_.sin_family = AF_INET;
    source_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

// By reset, so that no port is left behind in TIME_WAIT for the next run to miss.
load_client::~load_client() {
    for (const connection& c : connections_) {
        if (c.fd < 0) continue;
        const linger at_once{1, 0};
        setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(c.fd);
    }
    close(epoll_fd_);
}

usage load_client::look() const {
    usage found;
    std::string why_not;
    if (options_.pid != 0 && !look_at(options_.pid, found, why_not)) throw bad_input(why_not);
    return found;
}

bool load_client::take_next_source() noexcept {
    const std::uint32_t next = ntohl(source_.sin_addr.s_addr) + 1;
    source_.sin_addr.s_addr = htonl(next);
    bind_source_ = true;
    return (next & 0xff) != 0;
}

// One address has some 28 000 ports to connect from; when they are used up, the next one is taken.
int load_client::connected_socket() {
    for (;;) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) throw bad_input(std::string("no socket: ") + std::strerror(errno));
        const int on = 1;
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        const auto at = [](const sockaddr_in& a) { return reinterpret_cast<const sockaddr*>(&a); };
        const bool bound = !bind_source_ || bind(fd, at(source_), sizeof source_) == 0;
        if (bound && connect(fd, at(options_.server), sizeof options_.server) == 0) return fd;
        const int error = errno;
        close(fd);
        if (error == EINTR) continue;
        if (error != EADDRNOTAVAIL || !take_next_source()) {
            throw bad_input(std::string("cannot connect to the server: ") + std::strerror(error));
        }
    }
}

void load_client::open_all() {
    connections_.reserve(options_.connections);  // epoll holds their addresses
    alive_ = options_.connections;
    for (unsigned i = 0; i < options_.connections; ++i) {
        if (i != 0 && i % quick_ports == 0) take_next_source();
        connection& c = connections_.emplace_back(connected_socket(), i);
        set_no_delay(c.fd);
        if (fcntl(c.fd, F_SETFL, O_NONBLOCK) != 0) die("fcntl");
        epoll_event e{};
        e.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        e.data.ptr = &c;
        if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, c.fd, &e) != 0) die("epoll_ctl");
    }
}

load_report load_client::run() {
    report_.idle = look();
    open_all();
    began_ = now();
    if (!open_loop()) {
        for (connection& c : connections_) start(c, now());
    }
    turn_until(began_ + of(options_.warmup_seconds));
    report_.before = look();
    const wait_counter::seen before = of_server_.look();
    report_.of_load = {};
    measured_from_ = now();
    turn_until(measured_from_ + of(options_.seconds));
    measured_until_ = now();
    report_.after = look();
    report_.of_server = of_server_.look() - before;
    finish();
    return report_;
}

load_report load_client::run_once() {
    ending_ = true;  // an answer is followed by nothing
    report_.idle = look();
    open_all();
    exchange_one_each();  // afterwards every connection is accepted, and waits
    report_.before = look();
    say_ready();
    char line;
    while (read(STDIN_FILENO, &line, 1) < 0 && errno == EINTR) {
    }
    measured_from_ = now();
    exchange_one_each();
    report_.seconds = static_cast<double>(now() - measured_from_) * 1e-9;
    report_.after = look();
    report_.requests = alive_ - under_way_;
    report_.errors += under_way_;
    return report_;
}

// One message on each connection; messages that are not answered in time stay in flight.
void load_client::exchange_one_each() {
    const nanoseconds end = now() + patience;
    for (connection& c : connections_) {
        if (c.fd >= 0 && c.to_recv == 0) start(c, now());
    }
    while (under_way_ > 0 && now() < end) turn(100);
}

// An open loop never sleeps: it has a core to itself, and a sleeper is late.
void load_client::turn_until(nanoseconds end) {
    for (nanoseconds t = now(); t < end && alive_ > 0; t = now()) {
        if (open_loop()) send_what_is_due(t);
        turn(open_loop() ? 0 : static_cast<int>((end - t) / 1'000'000 + 1));
    }
}

void load_client::turn(int wait_ms) {
    epoll_event events[256];
    const int count = epoll_wait(epoll_fd_, events, 256, wait_ms);
    if (count > 0 && !ending_) {
        ++report_.of_load.waits;
        report_.of_load.events += static_cast<std::uint64_t>(count);
    }
    for (int i = 0; i < count; ++i) {
        connection& c = *static_cast<connection*>(events[i].data.ptr);
        if (c.fd >= 0 && c.to_send > 0 && (events[i].events & EPOLLOUT)) send_some(c);
        if (c.fd >= 0) recv_some(c, (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
    }
}

nanoseconds load_client::intended(const connection& c, std::uint64_t message) const noexcept {
    const std::uint64_t index = static_cast<std::uint64_t>(&c - connections_.data());
    return began_ + static_cast<nanoseconds>(
                        static_cast<double>(message * connections_.size() + index) * interval_ns_);
}

void load_client::send_what_is_due(nanoseconds time) {
    for (;; ++next_due_) {
        connection& c = connections_[next_due_ % connections_.size()];
        if (intended(c, c.due) > time) return;
        ++c.due;
        if (c.fd >= 0 && c.to_recv == 0) start(c, intended(c, c.taken++));
    }
}

void load_client::start(connection& c, nanoseconds when) {
    c.to_send = c.to_recv = options_.bytes;
    c.started = when;
    ++under_way_;
    send_some(c);
}

void load_client::send_some(connection& c) {
    while (c.to_send > 0) {
        const std::size_t count = std::min(c.to_send, chunk_bytes);
        c.out.peek(sent_.data(), count);
        const ssize_t n = send(c.fd, sent_.data(), count, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) return lose(c, "send", std::strerror(errno));
        c.out.skip(static_cast<std::size_t>(n));
        c.to_send -= static_cast<std::size_t>(n);
    }
}

// A short read has drained the socket, unless the stream ends behind it.
void load_client::recv_some(connection& c, bool ends) {
    for (;;) {
        const ssize_t n = recv(c.fd, received_.data(), chunk_bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) return lose(c, "recv", std::strerror(errno));
        if (n == 0) return lose(c, "recv", "the server hung up");
        verify(c, static_cast<std::size_t>(n));
        if (c.fd < 0 || (static_cast<std::size_t>(n) < chunk_bytes && !ends)) return;
    }
}

void load_client::verify(connection& c, std::size_t count) {
    const std::size_t known = std::min(count, c.to_recv - c.to_send);
    c.in.peek(expected_.data(), known);
    c.in.skip(known);
    report_.mismatches += count - known;  // bytes that were never sent
    if (std::memcmp(received_.data(), expected_.data(), known) != 0) {
        for (std::size_t i = 0; i < known; ++i) {
            report_.mismatches += received_[i] != expected_[i] ? 1 : 0;
        }
    }
    c.to_recv -= known;
    if (known > 0 && c.to_recv == 0) message_is_back(c);
}

void load_client::message_is_back(connection& c) {
    const nanoseconds time = now();
    --under_way_;
    report_.requests += time >= measured_from_ && !ending_ ? 1 : 0;
    if (c.started >= measured_from_) count(time - c.started);
    if (ending_) return;
    if (!open_loop()) return start(c, time);
    if (c.taken < c.due) start(c, intended(c, c.taken++));  // I2
}

void load_client::lose(connection& c, const char* what, const char* why) {
    ++report_.errors;
    if (report_.first_error.empty()) report_.first_error = std::string(what) + ": " + why;
    under_way_ -= c.to_recv > 0 ? 1 : 0;
    --alive_;
    c.to_send = c.to_recv = 0;
    close(c.fd);
    c.fd = -1;
}

void load_client::count(nanoseconds latency) {
    latency_.add(latency);
    longest_ = std::max(longest_, latency);
}

// Messages in flight come back, verified; messages that were due and never sent have waited so far.
void load_client::finish() {
    ending_ = true;
    for (connection& c : connections_) {
        for (; c.fd >= 0 && c.taken < c.due; ++c.taken) {
            const nanoseconds when = intended(c, c.taken);
            if (when >= measured_from_) count(measured_until_ - when);
        }
    }
    const nanoseconds end = measured_until_ + patience;
    while (under_way_ > 0 && now() < end) turn(100);
    if (under_way_ > 0 && report_.first_error.empty()) {
        report_.first_error = std::to_string(under_way_) + " messages did not come back";
    }
    report_.errors += under_way_;
    report_.seconds = static_cast<double>(measured_until_ - measured_from_) * 1e-9;
    report_.p50_us = static_cast<double>(latency_.percentile(0.50)) * 1e-3;
    report_.p99_us = static_cast<double>(latency_.percentile(0.99)) * 1e-3;
    report_.max_us = static_cast<double>(longest_) * 1e-3;
}

}  // namespace

load_report run_load(const load_options& options) {
    load_client client(options);
    return options.once ? client.run_once() : client.run();
}

}  // namespace bench::net
