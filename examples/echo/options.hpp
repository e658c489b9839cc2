// The command line of the echo example.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "styles.hpp"

namespace echo {

// The program cannot do what it was asked: one line on standard error, exit status 2.
struct bad_input : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct options {
    std::vector<const style*> styles;  // in the order asked for; all of them by default
    const style* serve = nullptr;      // only serve, in this style, until interrupted
    unsigned connections = 200;        // at a time
    double seconds = 2;                // per style
    std::uint16_t port = 0;            // 0: any free port
    std::uint64_t seed = 1;
    bool help = false;
};

extern const char* const help_text;

options parse_options(int argc, char** argv);  // throws bad_input

// Makes room for the sockets of `connections` under RLIMIT_NOFILE, or throws bad_input.
void allow_descriptors(unsigned connections);

}  // namespace echo
