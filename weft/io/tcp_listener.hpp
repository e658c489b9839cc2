// tcp_listener: where connections of TCP come in.
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

    // "127.0.0.1:7000", "[::1]:0"; port zero: a free one, see local_endpoint(). Fails with what the
    // system says: address_in_use, permission_denied; invalid_argument.
    static result<tcp_listener> bind(std::string_view where, const listen_options& = {});
    static result<tcp_listener> bind(const endpoint& where, const listen_options& = {});

    // Of a number that listens already: one that was inherited or passed. It is the listener's from
    // now on, also if this fails, and does not block or stay open on exec any more; that it does
    // not block is so for every process that shares it. Of the options multishot counts; the others
    // are for who binds. close() leaves what others share as it is. invalid_argument: it does not
    // listen, or is of another kind.
    static result<tcp_listener> adopt(int number, const listen_options& = {});

private:
    static result<tcp_listener> of(result<detail::listening>);
    using listener::listener;
};

}  // namespace weft
