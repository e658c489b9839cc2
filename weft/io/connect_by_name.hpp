// connect_by_name: resolves, and connects to the endpoint that answers first: what
// tcp_stream::connect("host:port") is.
//
// Its one idea is that of RFC 8305 (happy eyeballs): an attempt that is not answered is not given
// up when the next one begins. The endpoints are tried in the order of the resolver, the families
// by turns. The next attempt begins when the latest has failed, at once, or when it has lasted for
// the delay; then both are waited for. The first that connects wins. The others are stopped and
// closed, and when the last of them has ended the result is there.
//
//      look-up --- attempt 0 --------(no answer)------------------------x stopped, closed
//                     |- delay - attempt 1 --x refused                  |
//                                            attempt 2 ---- connected --+--> result
//
// Each of them waits by a waiter of its own, in no flow, at the executor of the flow that waits for
// the whole. What they come to runs there, between its turns: all this is of one thread. A stop or
// the deadline is handed on to them, and the last to end wakes the flow.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/io/connect.hpp"
#include "weft/io/resolver.hpp"

namespace weft::detail {

// What is tried in which order: the families by turns, beginning with the first; each in its order.
void take_turns(std::vector<endpoint>& all) noexcept;

class connect_by_name {
public:
    static constexpr bool reports_stop = true;
    static constexpr duration least_delay = std::chrono::milliseconds(10);

    connect_by_name(std::string_view where, duration timeout, duration delay);
    connect_by_name(connect_by_name&& other) noexcept;  // before it is awaited
    ~connect_by_name();

    bool ready() const noexcept { return !where_; }
    bool start(waiter& w);
    time_point deadline() const noexcept { return deadline_; }

protected:
    // Connected; or the error of the attempt that failed last, of the look-up, or timed_out, or
    // operation_canceled.
    result<descriptor> socket() noexcept;

private:
    class race;

    static void withdraw(waiter& w) noexcept;
    static void interrupt(waiter& w, stop_reason reason) noexcept;

    result<host_and_port> where_;
    duration timeout_;  // of all together
    duration delay_;
    time_point deadline_ = never;
    std::unique_ptr<race> race_;
};

// Stream is what a connected socket becomes by Stream::of(descriptor).
template <class Stream>
class connecting_by_name final : public connect_by_name {
public:
    using connect_by_name::connect_by_name;
    result<Stream> take(const waiter*, wait_status) noexcept {
        result<descriptor> d = socket();
        if (!d) return failure(d.error());
        return Stream::of(*std::move(d));
    }
};

}  // namespace weft::detail
