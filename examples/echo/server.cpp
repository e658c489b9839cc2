#include "server.hpp"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "buffer.hpp"
#include "options.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/fd_watch.hpp"
#include "weft/sched/loop.hpp"

namespace echo {

weft::tcp_listener listen(std::uint16_t port) {
    auto l = weft::tcp_listener::bind(weft::endpoint(weft::ip_address::loopback(), port));
    if (!l) {
        throw bad_input("cannot listen on port " + std::to_string(port) + ": " +
                        l.error().message());
    }
    const int bytes = 32 * 1024;  // a client that does not read must not cost more than this
    ::setsockopt(l->native_handle(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);  // inherited
    return *std::move(l);
}

server_report serve(const style& s, weft::tcp_listener& listener, int stop_fd) {
    server_report report;
    weft::loop l(weft::make_io_driver(s.io));
    weft::fiber server(
        [&] {
            weft::nursery sessions;
            weft::fiber stopper([&] {
                static_cast<void>(weft::wait_fd(stop_fd, weft::fd_events::read));
                listener.close();
            });
            while (auto client = listener.accept()) {
                ++report.sessions;
                s.begin(sessions, *std::move(client));
            }
            report.killed_suspended = sessions.living_count();
            sessions.kill_children();
        },
        {.name = "echo server", .on = l});
    l.run();
    server.join();
    report.buffers_constructed = buffer::constructed;
    report.buffers_destroyed = buffer::destroyed;
    return report;
}

}  // namespace echo
