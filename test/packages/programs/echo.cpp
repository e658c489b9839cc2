// All of weft, by its headers or, with IMPORT_WEFT, as a module: a fiber serves one connection, a
// task asks over it.

#include <array>
#include <coroutine>  // what holds a task includes it
#include <cstdio>
#include <span>
#include <string_view>

#include "weft/version.hpp"
#if defined(IMPORT_WEFT)
import weft;
#else
#include "weft/weft.hpp"
#endif

namespace {

weft::task<bool> ask(weft::endpoint at) {
    auto stream = co_await weft::tcp_stream::async_connect(at);
    if (!stream) co_return false;
    const std::string_view said = "echo";
    std::array<std::byte, 16> heard;
    if (!co_await stream->async_write_all(std::as_bytes(std::span(said)))) co_return false;
    const auto n = co_await stream->async_read(heard);
    co_return n && *n == said.size();
}

}  // namespace

int main() {
    const bool heard = weft::run([] {
        auto listener = weft::tcp_listener::bind("127.0.0.1:0").value();
        weft::nursery clients;
        clients.spawn([&] {
            auto client = listener.accept().value();
            std::array<std::byte, 16> buffer;
            while (const std::size_t n = client.read(buffer).value_or(0))
                if (!client.write_all(std::span(buffer).first(n))) return;
        });
        return weft::await(ask(listener.local_endpoint()));
    });
    std::printf("weft %d.%d: %s\n", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, heard ? "ok" : "lost");
    return heard ? 0 : 1;
}
