// weft_net_load: the load under which weft's servers and their peers are measured. Plain epoll, one
// thread, nothing of weft.
//
//   weft_net_load --connect 127.0.0.1:7007 --connections 1000 --seconds 2 --pid "$server"
//
// prints one line: what was done, what it cost the server, how long the answers took. Under --pid
// that is its processor time a request, and its memory with all connections open; idle_anon_kib is
// what it had before the first. Under --once the line tells how many connections answered.

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/net/bounce.hpp"
#include "bench/net/load_client.hpp"
#include "bench/net/load_options.hpp"
#include "bench/net/sockets.hpp"

namespace {

using namespace bench::net;

unsigned long long whole(std::uint64_t n) { return n; }

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out + '"';
}

void print(const load_options& o, const load_report& r) {
    std::printf("{");
    if (!o.name.empty()) std::printf("\"server\": %s, ", quoted(o.name).c_str());
    std::printf("\"connections\": %u, \"bytes\": %zu, ", o.connections, o.bytes);
    if (o.rate > 0) std::printf("\"rate\": %.0f, ", o.rate);
    std::printf("\"seconds\": %.3f, \"requests\": %llu, \"rps\": %.0f", r.seconds,
                whole(r.requests), static_cast<double>(r.requests) / r.seconds);
    if (o.pid != 0) {
        const auto spent = static_cast<double>(r.after.cpu_ns - r.before.cpu_ns) * 1e-3;
        if (r.requests > 0) {
            std::printf(", \"cpu_us\": %.4f", spent / static_cast<double>(r.requests));
        }
        std::printf(", \"cpu_share\": %.3f", spent * 1e-6 / r.seconds);
        std::printf(", \"rss_kib\": %llu, \"anon_kib\": %llu, \"idle_anon_kib\": %llu",
                    whole(r.after.rss_kib), whole(r.after.anon_kib), whole(r.idle.anon_kib));
    }
    std::printf(", \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f", r.p50_us, r.p99_us,
                r.max_us);
    std::printf(", \"mismatches\": %llu, \"errors\": %llu", whole(r.mismatches), whole(r.errors));
    if (!r.first_error.empty()) std::printf(", \"error\": %s", quoted(r.first_error).c_str());
    std::puts("}");
}

void print_once(const load_options& o, const load_report& r) {
    std::printf("{");
    if (!o.name.empty()) std::printf("\"server\": %s, ", quoted(o.name).c_str());
    std::printf("\"connections\": %u, \"bytes\": %zu, \"answered\": %llu, \"seconds\": %.3f",
                o.connections, o.bytes, whole(r.requests), r.seconds);
    if (o.pid != 0) {
        const std::uint64_t most = std::max(r.before.anon_kib, r.after.anon_kib);
        std::printf(", \"rss_kib\": %llu, \"bytes_per_connection\": %.0f", whole(r.after.rss_kib),
                    (static_cast<double>(most) - static_cast<double>(r.idle.anon_kib)) * 1024 /
                        o.connections);
    }
    std::printf(", \"mismatches\": %llu, \"errors\": %llu", whole(r.mismatches), whole(r.errors));
    if (!r.first_error.empty()) std::printf(", \"error\": %s", quoted(r.first_error).c_str());
    std::puts("}");
}

int run(const load_options& o) {
    if (o.help) {
        std::fputs(load_help, stdout);
        return 0;
    }
    if (o.bounce) {
        const double ns = bounce_ns(o.one_core, o.other_core);
        if (ns < 0) throw bad_input("cannot have both cores to bounce between");
        std::printf("{\"bounce_ns\": %.1f}\n", ns);
        return 0;
    }
    raise_file_limit();
    const load_report r = run_load(o);
    o.once ? print_once(o, r) : print(o, r);
    return r.mismatches == 0 && r.errors == 0 && r.requests > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(parse_load_options(argc, argv));
    } catch (const bad_input& fault) {
        std::fprintf(stderr, "weft_net_load: %s\n", fault.what());
        return 2;
    }
}
