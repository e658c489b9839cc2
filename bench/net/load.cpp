// weft_net_load: the load under which weft's servers and their peers are measured. Plain epoll, one
// thread, nothing of weft.
//
//   weft_net_load --connect 127.0.0.1:7007 --connections 1000 --seconds 2 --pid "$server"
//
// prints one line: the work done, the cost to the server, the latency of the answers. Under --pid
// the cost is the server's processor time per request, its share of the time in which it wanted its
// core, and its memory with all connections open; idle_anon_kib is its memory before the first
// connection. Under --once the line has the number of connections that answered.

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/net/bounce.hpp"
#include "bench/net/chase.hpp"
#include "bench/net/load_client.hpp"
#include "bench/net/load_options.hpp"
#include "bench/net/sockets.hpp"

namespace {

using namespace bench::net;

constexpr std::size_t chased_bytes = 12 * 1024 * 1024;

unsigned long long whole(std::uint64_t n) { return n; }

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out + '"';
}

void print_events(const char* name, const wait_counter::seen& of) {
    if (of.waits == 0) return;
    std::printf(", \"%s\": %.2f", name,
                static_cast<double>(of.events) / static_cast<double>(of.waits));
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
        const auto ready = static_cast<double>(r.after.ready_ns - r.before.ready_ns) * 1e-3;
        std::printf(", \"had_share\": %.3f", spent > 0 ? spent / (spent + ready) : 0);
        std::printf(", \"rss_kib\": %llu, \"anon_kib\": %llu, \"idle_anon_kib\": %llu",
                    whole(r.after.rss_kib), whole(r.after.anon_kib), whole(r.idle.anon_kib));
    }
    print_events("events_a_wait", r.of_load);
    print_events("server_events_a_wait", r.of_server);
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
        std::printf("{\"bounce_ns\": %.1f, \"chase_ns\": %.1f}\n", ns,
                    chase_ns(o.one_core, chased_bytes));
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
