// connect: connects a stream to an endpoint; tcp_stream and unix_stream use it.
#pragma once

#include <sys/socket.h>

#include <source_location>
#include <system_error>
#include <utility>

#include "weft/io/stream.hpp"

namespace weft::detail {

// The waiter opens the socket, for its driver.
class connect_operation : public io_operation {
public:
    connect_operation(const endpoint& to, time_limit limit, bool fast = false,
                      int type = SOCK_STREAM) noexcept;
    connect_operation(connect_operation&& other) noexcept;  // before it is awaited

    bool ready() noexcept;

protected:
    // The connected socket.
    result<descriptor> socket(const waiter* w, wait_status how) noexcept;

private:
    descriptor socket_;
    endpoint to_;
    bool fast_;  // connect with the first bytes, if the system allows it
    int type_;
    std::error_code refused_;
};

// Stream::of(descriptor) makes the stream of a connected socket.
template <class Stream>
class stream_connect_operation final : public connect_operation {
public:
    using connect_operation::connect_operation;
    result<Stream> take(const waiter* w, wait_status how) noexcept {
        result<descriptor> d = socket(w, how);
        if (!d) return failure(d.error());
        return Stream::of(*std::move(d));
    }
};

}  // namespace weft::detail
