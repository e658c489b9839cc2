// load_client: many connections to an echo server, one message under way on each, every byte
// verified.
//
// What a connection sends is pseudo-random, a function of the connection and of the position in its
// stream, so what comes back is checked without having been kept. A closed loop answers each answer
// with the next message. An open loop has its times from the beginning:
//
//   message k of all, at start + k / rate, is sent by connection k mod N
//
// and latency counts from there, however late the message could be sent because the one before was
// still under way; what at the end has not been sent at all counts as long as it has waited.
//
//   opening | warm-up | measured: requests, processor time | what is still under way comes back
//
// Or, of many connections that are idle, whether each of them still answers:
//
//   opening, a message on each | "ready" ... a line of input | measured: a message on each at once
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/net/load_options.hpp"
#include "bench/net/server_process.hpp"

namespace bench::net {

struct load_report {
    double seconds = 0;            // measured
    std::uint64_t requests = 0;    // that came back whole in that time
    std::uint64_t mismatches = 0;  // bytes that were not those sent, or that nobody sent
    std::uint64_t errors = 0;      // connections lost, and messages that did not come back
    std::string first_error;
    double p50_us = 0, p99_us = 0, max_us = 0;
    usage idle, before,
        after;  // of the server: before the first connection, around what is measured
};

// What it is to be is in the options. Throws bad_input if the server cannot be reached or there is
// no such process.
load_report run_load(const load_options& options);

}  // namespace bench::net
