// tcp_listener: accepts TCP connections.
//
// Design: a listener (listener.hpp) whose connections are tcp_streams.
//
// Limits: adopt() uses only `multishot` of its options: the others are for bind().
//
//   auto listener = weft::tcp_listener::bind("0.0.0.0:7000").value();
//   for (;;) {
//       auto s = listener.accept();
//       if (!s) break;                                  // closed, or stopped
//       weft::fiber([s = *std::move(s)]() mutable { serve(s); }).detach();
//   }
#pragma once

#include <string_view>

#include "weft/io/listener.hpp"
#include "weft/io/tcp_stream.hpp"

namespace weft {

class tcp_listener : public listener<tcp_stream> {
public:
    tcp_listener() noexcept = default;

    // "127.0.0.1:7000", "[::1]:0"; port zero: a free one, see local_endpoint(). Errors are the
    // system's: address_in_use, permission_denied; invalid_argument.
    static result<tcp_listener> bind(std::string_view where, const listen_options& = {});
    static result<tcp_listener> bind(const endpoint& where, const listen_options& = {});

    // Takes ownership of an fd that listens already, also on failure: one that was inherited or
    // passed. It is made nonblocking, for every process that shares it, and is closed on exec from
    // now on. Of the options only multishot is used; the others are for bind(). close() leaves what
    // other processes share as it is. invalid_argument: it does not listen, or is of another kind.
    static result<tcp_listener> adopt(int number, const listen_options& = {});

private:
    static result<tcp_listener> of(result<detail::listening>);
    using listener::listener;
};

}  // namespace weft
