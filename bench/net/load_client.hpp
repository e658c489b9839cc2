// load_client: many connections to an echo server, one message in flight on each, every byte
// verified.
//
// The bytes of a connection are pseudo-random, a function of the connection and of the position in
// its stream, so the returned bytes are checked without a copy. A closed loop answers each answer
// with the next message. An open loop has its times from the beginning:
//
//   message k of all, at start + k / rate, is sent by connection k mod N
//
// and latency counts from that time, even if the message is sent late because the one before was
// still in flight. A message that was never sent counts with the time that it has waited.
//
//   opening | warm-up | measured: requests, processor time | messages in flight come back
//
// Or, for many idle connections, whether each of them still answers:
//
//   opening, a message on each | "ready" ... a line of input | measured: a message on each at once
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/net/load_options.hpp"
#include "bench/net/server_process.hpp"
#include "bench/net/waits.hpp"

namespace bench::net {

struct load_report {
    double seconds = 0;            // measured
    std::uint64_t requests = 0;    // that came back whole in that time
    std::uint64_t mismatches = 0;  // bytes that differ from those sent, or were never sent
    std::uint64_t errors = 0;      // connections lost, and messages that did not come back
    std::string first_error;
    wait_counter::seen of_load, of_server;  // in that time
    double p50_us = 0, p99_us = 0, max_us = 0;
    usage idle, before,
        after;  // of the server: before the first connection, around what is measured
};

// Runs the load that the options describe. Throws bad_input if the server cannot be reached or the
// process does not exist.
load_report run_load(const load_options& options);

}  // namespace bench::net
