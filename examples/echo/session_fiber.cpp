// The echo session as a fiber: plain blocking code.
//
// read() and write_all() suspend the fiber, and the loop runs others meanwhile. The buffer is a
// local variable on the fiber's stack.
#include <span>
#include <utility>

#include "buffer.hpp"
#include "styles.hpp"
#include "weft/fiber/nursery.hpp"

namespace echo {

namespace {

void serve_client(weft::tcp_stream client) {
    buffer buf;
    while (const std::size_t n = client.read(buf.data).value_or(0)) {
        if (!client.write_all(std::span(buf.data).first(n))) return;
    }
}

}  // namespace

void begin_fiber(weft::nursery& sessions, weft::tcp_stream client) {
    sessions.spawn([c = std::move(client)]() mutable { serve_client(std::move(c)); });
}

}  // namespace echo
