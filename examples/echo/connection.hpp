// connection: one connection of the load client, from its opening to its rude end, again and again.
//
//   open --> send a message, receive it back --> ... --> hang up --> open ...
//
// What a connection does follows from its seed alone (its script); when, from the socket.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "latency.hpp"
#include "random.hpp"
#include "report.hpp"

namespace echo {

inline constexpr std::size_t chunk_bytes = 64 * 1024;  // most that one send or recv moves

class connection;
using steady = std::chrono::steady_clock;

// What all connections of the client share.
struct load {
    int epoll_fd = -1;
    sockaddr_in server{};
    steady::time_point measured_from = steady::time_point::max();
    bool ending = false;  // time is up: no new message, no new connection
    client_report report;
    latency round_trip_ns;
    std::vector<connection*> resting;            // to be woken at the next tick
    std::vector<char> sent, received, expected;  // scratch, chunk_bytes each
};

class connection {
public:
    connection(load& shared, std::uint64_t seed) noexcept : load_(shared), dice_(seed) {}
    ~connection();
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    void open();
    void on_event(std::uint32_t events);
    void wake();  // after a rest: a slow reader reads on, a failed open is tried again

    // Time is up: the connection hangs up at once; or hangs up and opens a last time, until the
    // server ends it; or hangs up when its message is back.
    enum class farewell { at_once, by_server, polite };
    void end(farewell f);
    bool is_open() const noexcept { return fd_ >= 0; }
    bool is_closed() const noexcept { return !is_open(); }
    // Whether this connection no longer needs the server.
    bool is_settled() const noexcept { return !is_open() || answered_; }

private:
    enum class ending { in_recv, in_send, polite, by_server };
    static constexpr std::uint32_t not_watched = ~0u;

    void start_message();
    void send_some();
    void recv_some();
    void verify(std::size_t count);
    void message_is_back();
    void watch();
    void rest();
    void hang_up();
    void ended_by_server();

    load& load_;
    dice dice_;
    int fd_ = -1;
    std::uint32_t watched_ = not_watched;

    // The script of this connection's present life.
    ending how_ = ending::polite;
    bool reset_ = false;            // hang up by RST instead of FIN
    bool slow_ = false;             // reads late, through a small window
    std::uint64_t left_bytes_ = 0;  // until the connection hangs up
    byte_stream out_{0}, in_{0};

    // The message in flight.
    std::size_t to_send_ = 0;
    std::size_t to_recv_ = 0;
    bool resting_ = false;
    bool finished_ = false;  // shut down for sending: only the end of the stream may come
    bool answered_ = false;  // the server is to end this connection, which has had a message back
    steady::time_point started_;
};

}  // namespace echo
