// The echo session as a C++20 task: plain code whose suspensions are marked by co_await.
//
// The buffer is a local variable; the compiler puts it into the task's frame.
#include <span>
#include <utility>

#include "buffer.hpp"
#include "styles.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"

namespace echo {

namespace {

weft::task<> serve_client(weft::tcp_stream client) {
    buffer buf;
    for (;;) {
        const std::size_t n = (co_await client.async_read(buf.data)).value_or(0);
        if (n == 0) co_return;
        if (!co_await client.async_write_all(std::span(buf.data).first(n))) co_return;
    }
}

}  // namespace

void begin_task(weft::nursery& sessions, weft::tcp_stream client) {
    sessions.spawn(serve_client(std::move(client)));
}

}  // namespace echo
