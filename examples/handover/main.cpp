// handover: a server that is replaced by its next version while clients connect all the time: no
// connection is refused.
//
// Shows: a listening socket that is passed from one process to the next over a local socket
// (SCM_RIGHTS), the credentials of the local socket's peer, adopting a listener, and a shutdown
// that lets clients finish.
//
//   build/release/examples/handover 127.0.0.1:7003 /tmp/handover.sock &     # then, to replace it:
//   build/release/examples/handover 127.0.0.1:7003 /tmp/handover.sock &
//
// The program prints the address it listens on, and answers each line with its process id in front
// of the line. A new process takes the listener of a process that runs already, whatever address
// the new one was given:
//
//     old: listens ---------> sends its listener --------> closes it, ends with its last client
//     new:         connects ----------------> adopts it, says so, takes over the path
//
// Both accept for a short time; connections that are not accepted yet stay with the socket. If the
// new process ends before it has said so, the old process continues. The clients of the old process
// have ten seconds to end.

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/io/paths.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/run/run.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;

void serve(weft::tcp_stream s) {
    s.set_options({.read_timeout = 1min, .write_timeout = 10s});
    const std::string name = std::to_string(::getpid()) + " ";
    std::string text;
    while (const std::size_t n = s.read_until(text, "\n", 4096).value_or(0)) {
        if (!s.write_all(weft::bytes_of(name + text.substr(0, n)))) return;
        text.erase(0, n);
    }
}

// The listener of the process that runs already, and the connection to that process; none if no
// process runs.
weft::result<weft::owned_number> taken_over(const weft::endpoint& at, weft::unix_stream& old) {
    for (int tries = 0;; ++tries) {
        auto s = weft::unix_stream::connect(at, 10s);
        if (s.error() == std::errc::no_such_file_or_directory ||
            s.error() == std::errc::connection_refused)  // the old process has ended
            return weft::owned_number();
        if (!s) return weft::failure(s.error());
        std::array<std::byte, 1> word;
        std::array<weft::owned_number, 1> numbers;
        const auto came = s->recv_numbers(word, numbers);
        if (came && came->numbers == 1) {
            old = *std::move(s);
            return std::move(numbers[0]);
        }
        // The old process was about to end. Its descriptors are closed shortly.
        if (tries == 100)
            return weft::failure(came ? std::error_code(weft::errc::closed) : came.error());
        weft::this_fiber::sleep_for(50ms);
    }
}

// Returns when a next process, of the same user, has taken the listener and says that it serves.
void send_listener(weft::unix_listener& control, const weft::tcp_listener& l) {
    while (auto next = control.accept()) {
        const auto peer = next->credentials();
        if (!peer || peer->user != ::geteuid()) continue;
        next->set_options({.read_timeout = 10s, .write_timeout = 10s});
        const int numbers[] = {l.native_handle()};
        if (!next->send_numbers(weft::bytes_of("l"), numbers)) continue;
        std::array<std::byte, 1> word;
        if (next->read(word).value_or(0) == 1) return;
    }
}

int fail(const char* what, const std::string& why) {
    std::fprintf(stderr, "handover: %s: %s\n", what, why.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return fail("usage", "handover ADDRESS:PORT PATH");
    return weft::run([&] {
        const auto at = weft::endpoint::local(argv[2]);
        if (!at || argv[2][0] == '@') return fail(argv[2], "it is no path");
        weft::unix_stream old;
        auto taken = taken_over(*at, old);
        if (!taken) return fail(argv[2], taken.error().message());
        auto l = *taken ? weft::tcp_listener::adopt(taken->release())
                        : weft::tcp_listener::bind(std::string_view(argv[1]));
        if (!l) return fail(argv[1], l.error().message());
        // Bound at a private path first: the public path belongs to the old process until this
        // process serves.
        const std::string beside = std::string(argv[2]) + "." + std::to_string(::getpid());
        const auto here = weft::endpoint::local(beside);
        if (!here) return fail(beside.c_str(), here.error().message());
        auto control = weft::unix_listener::bind(*here);
        if (!control) return fail(beside.c_str(), control.error().message());

        weft::nursery clients;
        clients.spawn([&] {
            while (auto s = l->accept())
                clients.spawn([s = *std::move(s)]() mutable { serve(std::move(s)); });
        });
        if (old) static_cast<void>(old.write_all(weft::bytes_of("s")));  // the peer may be gone
        if (const auto r = weft::rename(beside, argv[2]); !r)
            return fail(argv[2], r.error().message());
        std::printf("%s\n", l->local_endpoint().to_string().c_str());
        std::fflush(stdout);

        send_listener(*control, *l);
        control->close();
        l->close();
        try {
            const weft::timeout_scope limit(10s);
            clients.join();
        } catch (const weft::stopped&) {  // the remaining clients have been asked to stop
        }
        return 0;
    });
}
