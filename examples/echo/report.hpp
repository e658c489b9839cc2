// What the server and the client of one trial report, the verdict on it, and the table.
//
// Both reports cross a pipe as bytes, so they are plain numbers.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace echo {

struct server_report {
    std::uint64_t sessions = 0;             // accepted
    std::uint64_t killed_suspended = 0;     // left at the end, and destroyed while suspended
    std::uint64_t buffers_constructed = 0;  // must be equal to ...
    std::uint64_t buffers_destroyed = 0;    // ... this
};

struct client_report {
    std::uint64_t connections = 0;  // opened
    std::uint64_t round_trips = 0;  // messages that came back whole, within the measured time
    std::uint64_t measured_ns = 0;
    std::uint64_t p50_ns = 0;
    std::uint64_t p99_ns = 0;
    std::uint64_t bytes_verified = 0;
    std::uint64_t mismatches = 0;  // bytes that differ, or that were never sent
    std::uint64_t broken = 0;      // connections that the server ended
    std::uint64_t stalled = 0;     // messages that never came back whole, ends that never came
    std::uint64_t hung_up_mid_echo = 0;
    std::uint64_t resets = 0;    // hung up by RST
    std::uint64_t complete = 0;  // 0 in the reports that only show progress; 1: the server may end
};

static_assert(std::is_trivially_copyable_v<server_report>);
static_assert(std::is_trivially_copyable_v<client_report>);

struct trial_report {
    std::string style;
    server_report server;
    client_report client;
    std::uint64_t peak_rss_bytes = 0;   // of the server process
    std::vector<std::string> failures;  // of the processes themselves: died, never ended
};

// Why a trial failed, one clause each; empty when it passed.
std::vector<std::string> failures_of(const trial_report& trial);

void print_heading(unsigned connections, double seconds);
void print_row(const trial_report& trial);
void print_left_out(const char* style, const char* why);
// Prints the totals and PASS, or every reason and FAIL; true for PASS.
bool print_verdict(const std::vector<trial_report>& trials);

}  // namespace echo
