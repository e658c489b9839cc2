// http_hello: answers every request with "Hello, World!", a fiber for each connection.
//
// Shows: plain blocking code under a load generator. The parser is Node's old one (http-parser),
// and is fed with the bytes as they come: a request may come in parts, or many requests at once. A
// client has a time limit for each request, however slowly the bytes come, and for taking each
// answer.
//
//   build/release/examples/http_hello 8080 &  wrk -t1 -c256 -d5 http://127.0.0.1:8080/
//
// Port 0 selects a free port. The second argument is the time limit in seconds, 30 by default. The
// program runs until a signal ends it.

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "examples/http_hello/requests.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"

namespace {

void serve(weft::tcp_stream s, std::chrono::seconds limit) {
    http_hello::requests requests;
    std::array<std::byte, 2048> buffer;
    weft::time_point due = weft::after(weft::now(), limit);
    while (!requests.is_over()) {
        s.set_options({.read_timeout = due - weft::now(), .write_timeout = limit});
        const std::size_t n = s.read(buffer).value_or(0);
        if (n == 0) return;  // the end, or too late
        requests.take({reinterpret_cast<const char*>(buffer.data()), n});
        if (requests.answers().empty()) continue;
        if (!s.write_all(weft::bytes_of(requests.answers()))) return;
        requests.forget_answers();
        due = weft::after(weft::now(), limit);
    }
}

// Reads all of the text as a number.
template <class Number>
bool read_number(std::string_view text, Number& n) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

int fail(const char* what, const std::string& why) {
    std::fprintf(stderr, "http_hello: %s: %s\n", what, why.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint16_t port = 0;
    int limit = 30;
    if (argc < 2 || argc > 3 || !read_number(argv[1], port) ||
        (argc == 3 && !read_number(argv[2], limit)) || limit <= 0)
        return fail("usage", "http_hello PORT [SECONDS]");
    return weft::run([&] {
        auto listener =
            weft::tcp_listener::bind(weft::endpoint(weft::ip_address::loopback(), port));
        if (!listener) return fail("cannot listen", listener.error().message());
        std::printf("http://%s/\n", listener->local_endpoint().to_string().c_str());
        std::fflush(stdout);
        while (auto s = listener->accept())
            weft::fiber([s = *std::move(s), limit]() mutable {
                serve(std::move(s), std::chrono::seconds(limit));
            }).detach();
        return 0;
    });
}
