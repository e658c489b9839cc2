#include "report.hpp"

#include <cstdio>

namespace echo {

namespace {

// 1234567 -> "1 234 567"
std::string grouped(std::uint64_t n) {
    const std::string digits = std::to_string(n);
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(' ');
        out.push_back(digits[i]);
    }
    return out;
}

std::uint64_t trips_per_second(const client_report& c) {
    return c.measured_ns == 0 ? 0 : c.round_trips * 1'000'000'000 / c.measured_ns;
}

}  // namespace

std::vector<std::string> failures_of(const trial_report& trial) {
    if (!trial.failures.empty()) return trial.failures;  // the numbers mean nothing then
    std::vector<std::string> reasons;
    const auto expect = [&reasons](bool holds, const std::string& otherwise) {
        if (!holds) reasons.push_back(otherwise);
    };
    const server_report& s = trial.server;
    const client_report& c = trial.client;
    expect(c.round_trips > 0, "no message came back");
    expect(c.mismatches == 0, grouped(c.mismatches) + " bytes came back wrong");
    expect(c.broken == 0, grouped(c.broken) + " connections were ended by the server");
    expect(c.stalled == 0, grouped(c.stalled) + " messages never came back whole");
    expect(s.buffers_constructed == s.buffers_destroyed,
           grouped(s.buffers_constructed) + " buffers were constructed but " +
               grouped(s.buffers_destroyed) + " destroyed");
    expect(s.buffers_constructed == s.sessions,
           grouped(s.buffers_constructed) + " buffers in " + grouped(s.sessions) + " sessions");
    expect(s.killed_suspended > 0, "no session was destroyed while suspended");
    return reasons;
}

void print_heading(unsigned connections, double seconds) {
    std::printf("echo server on loopback, %u connections at a time, %g s per style\n\n",
                connections, seconds);
    std::printf("%-14s %8s %8s %8s %8s %13s %6s %9s %9s %8s\n", "", "connec-", "round", "p50",
                "p99", "bytes", "mis-", "buffers", "buffers", "peak");
    std::printf("%-14s %8s %8s %8s %8s %13s %6s %9s %9s %8s\n", "style", "tions", "trips/s", "us",
                "us", "verified", "match", "made", "destroyed", "RSS MiB");
    std::fflush(stdout);
}

void print_row(const trial_report& trial) {
    const client_report& c = trial.client;
    const server_report& s = trial.server;
    std::printf("%-14s %8s %8s %8s %8s %13s %6s %9s %9s %8.1f%s\n", trial.style.c_str(),
                grouped(c.connections).c_str(), grouped(trips_per_second(c)).c_str(),
                grouped(c.p50_ns / 1000).c_str(), grouped(c.p99_ns / 1000).c_str(),
                grouped(c.bytes_verified).c_str(), grouped(c.mismatches).c_str(),
                grouped(s.buffers_constructed).c_str(), grouped(s.buffers_destroyed).c_str(),
                static_cast<double>(trial.peak_rss_bytes) / (1024 * 1024),
                failures_of(trial).empty() ? "" : "  FAIL");
    std::fflush(stdout);
}

void print_left_out(const char* style, const char* why) {
    std::printf("%-14s left out: no io_uring here (%s)\n", style, why);
    std::fflush(stdout);
}

bool print_verdict(const std::vector<trial_report>& trials) {
    std::uint64_t killed = 0, mid_echo = 0, resets = 0;
    bool passed = true;
    std::printf("\n");
    for (const trial_report& t : trials) {
        killed += t.server.killed_suspended;
        mid_echo += t.client.hung_up_mid_echo;
        resets += t.client.resets;
        for (const std::string& reason : failures_of(t)) {
            std::printf("FAIL %s: %s\n", t.style.c_str(), reason.c_str());
            passed = false;
        }
    }
    std::printf(
        "clients hung up in mid-echo %s times, by reset %s times;\n"
        "%s sessions were left to the end of their server, and destroyed while suspended\n",
        grouped(mid_echo).c_str(), grouped(resets).c_str(), grouped(killed).c_str());
    std::printf("%s\n", passed ? "PASS" : "FAIL");
    std::fflush(stdout);
    return passed;
}

}  // namespace echo
