// hiredis_unchanged: a client library that knows nothing of weft waits in fibers, on one thread.
//
// Shows: linking weft::hook is the only change. A thousand fibers make the blocking calls of
// hiredis as a thousand threads would, and wait for their answers at the same time.
//
//   build/release/examples/hiredis_unchanged 127.0.0.1 6379
//
// Without arguments the program serves itself, with a server that knows a single answer.

#include <hiredis/hiredis.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"

using namespace std::chrono_literals;

// [client]
// Unchanged code of a program that blocks.
bool waits_a_second(const char* host, int port) {
    const std::unique_ptr<redisContext, void (*)(redisContext*)> c(redisConnect(host, port),
                                                                   redisFree);
    if (c->err != 0) return false;
    void* const reply = redisCommand(c.get(), "BLPOP empty:list 1");
    if (reply != nullptr) freeReplyObject(reply);
    return reply != nullptr;
}

int all_at_once(const char* host, int port) {
    int answered = 0;
    weft::nursery n;
    for (int i = 0; i < 1000; ++i) n.spawn([&] { answered += waits_a_second(host, port); });
    n.join();
    return answered;
}
// [/client]

// Answers each query after a second, with an empty result.
void answer_all(weft::tcp_listener& listener) {
    weft::nursery n;
    while (auto s = listener.accept())
        n.spawn([s = *std::move(s)]() mutable {
            std::array<std::byte, 256> question;
            if (s.read(question).value_or(0) == 0) return;
            weft::this_fiber::sleep_for(1s);
            (void)s.write_all(weft::bytes_of("*-1\r\n"));
        });
}

int main(int argc, char** argv) {
    return weft::run([&] {
        weft::tcp_listener listener;
        weft::fiber server;
        std::string host = "127.0.0.1";
        int port = 0;
        if (argc == 3) {
            host = argv[1];
            port = std::atoi(argv[2]);
        } else {
            listener = weft::tcp_listener::bind("127.0.0.1:0").value();
            port = listener.local_endpoint().port();
            server = weft::fiber([&] { answer_all(listener); });
        }
        const auto begun = weft::steady_now();
        const int answered = all_at_once(host.c_str(), port);
        const std::chrono::duration<double> took = weft::steady_now() - begun;
        std::printf("%d of 1000 have waited for a second each, in %.2f s\n", answered,
                    took.count());
        return answered == 1000 && took < 30s ? 0 : 1;
    });
}
