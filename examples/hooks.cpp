// Blocking code in fibers: a client that knows nothing of weft, a thousand times at once on one
// thread.
//
// fetch() and serve() are plain POSIX: getaddrinfo, connect, accept, read, write. Both are compiled
// unchanged, and could as well be part of a foreign library. The program links weft::hook, so that
// in a fiber each blocking call suspends only the fiber.
//
//   build/release/examples/hooks

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "weft/fiber/nursery.hpp"
#include "weft/run/run.hpp"

namespace {

std::string read_all(int fd) {
    std::string all;
    char some[512];
    for (ssize_t n; (n = ::read(fd, some, sizeof some)) > 0;)
        all.append(some, static_cast<std::size_t>(n));
    return all;
}

std::string fetch(const char* host, const char* port, const std::string& what) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host, port, &hints, &found) != 0) return "no such host";
    const int fd = ::socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    const int connected = ::connect(fd, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
    std::string answer = "no connection";
    if (connected == 0 && ::write(fd, what.data(), what.size()) > 0) answer = read_all(fd);
    ::close(fd);
    return answer;
}

// A slow server: a tenth of a second for each request.
void serve(int fd) {
    char what[64];
    const ssize_t n = ::read(fd, what, sizeof what);
    ::usleep(100'000);
    const std::string answer = "you said " + std::string(what, n > 0 ? std::size_t(n) : 0);
    if (::write(fd, answer.data(), answer.size()) < 0) std::perror("write");
    ::close(fd);
}

int listen_somewhere(std::string& port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    ::bind(fd, reinterpret_cast<sockaddr*>(&at), bytes);
    ::listen(fd, 1024);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes);
    port = std::to_string(ntohs(at.sin_port));
    return fd;
}

}  // namespace

int main() {
    constexpr int count = 1000;
    int right = 0;
    const auto start = std::chrono::steady_clock::now();
    weft::run([&] {
        std::string port;
        const int listening = listen_somewhere(port);
        weft::nursery all;
        all.spawn([&] {
            for (int i = 0; i < count; ++i) {
                const int fd = ::accept(listening, nullptr, nullptr);
                all.spawn([fd] { serve(fd); });
            }
        });
        for (int i = 0; i < count; ++i)
            all.spawn([&, i] {
                const std::string what = std::to_string(i);
                right += fetch("localhost", port.c_str(), what) == "you said " + what;
            });
        all.join();
        ::close(listening);
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf(
        "%d of %d answers are right, in %s\n", right, count,
        took.count() < count * 0.1 / 2 ? "far less than one after the other" : "all the time");
    return right == count && took.count() < count * 0.1 / 2 ? 0 : 1;
}
