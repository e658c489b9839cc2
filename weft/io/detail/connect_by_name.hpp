// connect_by_name: resolves a name and connects to the endpoint that answers first:
// tcp_stream::connect("host:port").
//
// Design: RFC 8305 (happy eyeballs). An attempt that gets no answer is not given up when the next
// one starts. The endpoints are tried in the resolver's order, alternating between the address
// families. The next attempt starts at once when the latest has failed, or when the latest has
// lasted for the delay; then both are waited for. The first that connects wins. The others are
// stopped and closed; the result is there when the last of them has ended.
//
//      look-up --- attempt 0 --------(no answer)------------------------x stopped, closed
//                     |- delay - attempt 1 --x refused                  |
//                                            attempt 2 ---- connected --+--> result
//
// Each part waits with a waiter of its own, outside any flow, on the executor of the flow that
// waits for the whole. Its completion runs there, between the turns of that flow, so all of this is
// on one thread. A stop or the deadline is forwarded to the parts, and the last part to end wakes
// the flow.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/io/detail/connect.hpp"
#include "weft/io/resolver.hpp"

namespace weft::detail {

// The order of the attempts: alternates between the families, beginning with that of the first
// endpoint. Each family keeps its order.
void take_turns(std::vector<endpoint>& all) noexcept;

class connect_by_name {
public:
    static constexpr bool reports_stop = true;
    static constexpr duration least_delay = std::chrono::milliseconds(10);

    connect_by_name(std::string_view where, time_limit limit, duration delay);
    connect_by_name(connect_by_name&& other) noexcept;  // before it is awaited
    ~connect_by_name();

    bool ready() const noexcept { return !where_; }
    bool start(waiter& w);
    time_point deadline() const noexcept { return deadline_of(limit_); }

protected:
    // The connected socket; or the error of the attempt that failed last or of the look-up, or
    // timed_out, or operation_canceled.
    result<descriptor> socket() noexcept;

private:
    class race;

    static void cancel(waiter& w) noexcept;
    static void interrupt(waiter& w, stop_reason reason) noexcept;

    result<host_and_port> where_;
    time_limit limit_;  // of the whole operation
    duration delay_;
    std::unique_ptr<race> race_;
};

// Stream::of(descriptor) makes the stream of a connected socket.
template <class Stream>
class connect_by_name_operation final : public connect_by_name {
public:
    using connect_by_name::connect_by_name;
    result<Stream> take(const waiter*, wait_status) noexcept {
        result<descriptor> d = socket();
        if (!d) return failure(d.error());
        return Stream::of(*std::move(d));
    }
};

}  // namespace weft::detail
