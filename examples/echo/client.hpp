// client: the load. Many connections, random messages, every byte verified, rude endings.
//
// Each connection keeps one message in flight and measures how long it takes to come back whole.
// It hangs up at a byte position drawn from the seed: in the middle of an echo, in the middle of a
// send, by reset, or politely after the last byte; then the next connection takes its place. When
// time is up, some connections continue until the server ends them.
//
//   client_report whole = run_client(settings, [](const client_report& so_far) { ... });
//
// so_far.complete: the server may end now; the client returns when it has.
#pragma once

#include <cstdint>
#include <functional>

#include "report.hpp"

namespace echo {

struct client_settings {
    std::uint16_t port = 0;
    unsigned connections = 0;
    double seconds = 0;
    std::uint64_t seed = 0;
    double drain_seconds = 10;  // at most, for the last messages to come back, and for the server
};

client_report run_client(const client_settings& settings,
                         const std::function<void(const client_report&)>& progress);

}  // namespace echo
