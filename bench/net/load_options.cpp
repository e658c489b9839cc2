#include "bench/net/load_options.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cmath>
#include <string_view>

namespace bench::net {

const char* const load_help =
    "usage: weft_net_load --connect 127.0.0.1:PORT --connections N --seconds S [options]\n"
    "       weft_net_load --connect 127.0.0.1:PORT --connections N --once [options]\n"
    "       weft_net_load --bounce [--cores A,B]\n"
    "\n"
    "Loads an echo server, verifies every byte, and prints one line of JSON. Each connection has "
    "one\n"
    "message under way. Exit status: 0 all came back, 1 something did not, 2 bad input.\n"
    "\n"
    "  --bytes B      of a message (64)\n"
    "  --rate R       open loop: R messages a second over all connections, at times that are "
    "fixed\n"
    "                 beforehand, from which latency counts; otherwise each answer is followed by\n"
    "                 the next message\n"
    "  --warmup S     not measured (0)\n"
    "  --pid PID      the server's process: tells its processor time and its memory\n"
    "  --waits FILE   that weft_net_waits.so counts the server's waits in: tells events a wait\n"
    "  --name NAME    put into the line as \"server\"\n"
    "  --once         has one message come back on each connection, says \"ready\", waits for a "
    "line of\n"
    "                 its input, sends one on each at once, and tells how many came back within 10 "
    "s\n"
    "  --bounce       only measures how long a cache line takes from core A to core B and back\n"
    "                 (0,1), and a load of a chain of 12 MiB on core A\n";

namespace {

using text = std::string_view;

template <class Number>
Number number_in(text option, text given, Number least, Number most) {
    Number n{};
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), n);
    // NaN is not within the bounds either.
    if (error == std::errc{} && end == given.data() + given.size() && n >= least && n <= most) {
        return n;
    }
    std::string low = std::to_string(least), high = std::to_string(most);
    for (std::string* s : {&low, &high}) {
        if (s->find('.') != s->npos) s->erase(s->find_last_not_of('0') + 1);
        if (s->back() == '.') s->pop_back();
    }
    throw bad_input(std::string(option) + " takes a number from " + low + " to " + high +
                    ", not \"" + std::string(given) + "\"");
}

sockaddr_in address_in(text option, text given) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    const std::size_t colon = given.rfind(':');
    const std::string host(given.substr(0, colon));
    if (colon == given.npos || inet_pton(AF_INET, host.c_str(), &a.sin_addr) != 1 ||
        (ntohl(a.sin_addr.s_addr) >> 24) != 127) {
        throw bad_input(std::string(option) + " takes 127.x.x.x:PORT, on this machine, not \"" +
                        std::string(given) + "\"");
    }
    a.sin_port = htons(number_in<std::uint16_t>(option, given.substr(colon + 1), 1, 65'535));
    return a;
}

void require(bool given, const char* option) {
    if (!given) throw bad_input(std::string(option) + " is needed (try --help)");
}

}  // namespace

load_options parse_load_options(int argc, char** argv) {
    load_options o;
    for (int i = 1; i < argc; ++i) {
        const text option = argv[i];
        const auto value = [&]() -> text {
            if (i + 1 == argc) throw bad_input(std::string(option) + " needs a value");
            return argv[++i];
        };
        if (option == "--help") {
            o.help = true;
        } else if (option == "--connect") {
            o.server = address_in(option, value());
        } else if (option == "--connections") {
            o.connections = number_in(option, value(), 1u, 1'000'000u);
        } else if (option == "--seconds") {
            o.seconds = number_in(option, value(), 0.01, 3600.0);
        } else if (option == "--warmup") {
            o.warmup_seconds = number_in(option, value(), 0.0, 3600.0);
        } else if (option == "--rate") {
            o.rate = number_in(option, value(), 1.0, 1e8);
        } else if (option == "--bytes") {
            o.bytes = number_in<std::size_t>(option, value(), 1, 1u << 24);
        } else if (option == "--pid") {
            o.pid = number_in<pid_t>(option, value(), 1, 1 << 22);
        } else if (option == "--name") {
            o.name = value();
        } else if (option == "--waits") {
            o.waits = value();
        } else if (option == "--once") {
            o.once = true;
        } else if (option == "--bounce") {
            o.bounce = true;
        } else if (option == "--cores") {
            const text cores = value();
            const std::size_t comma = cores.find(',');
            if (comma == cores.npos) throw bad_input("--cores takes two of them, like 0,1");
            o.one_core = number_in(option, cores.substr(0, comma), 0, 1023);
            o.other_core = number_in(option, cores.substr(comma + 1), 0, 1023);
            if (o.one_core == o.other_core) throw bad_input("--cores takes two different ones");
        } else {
            throw bad_input("unknown option \"" + std::string(option) + "\" (try --help)");
        }
    }
    if (o.help || o.bounce) return o;
    require(o.server.sin_port != 0, "--connect");
    require(o.connections != 0, "--connections");
    require(o.once || o.seconds != 0, "--seconds");
    return o;
}

}  // namespace bench::net
