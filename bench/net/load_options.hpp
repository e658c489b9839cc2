// load_options: the command line of weft_net_load. The load goes to this machine and to no other,
// so an address is one of 127.0.0.0/8.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace bench::net {

struct load_options {
    sockaddr_in server{};
    unsigned connections = 0;
    double seconds = 0;         // measured
    double warmup_seconds = 0;  // before that
    double rate = 0;            // requests a second of an open loop; 0: a closed loop
    std::size_t bytes = 64;     // of a message
    pid_t pid = 0;              // of the server, to report its usage; 0: no report
    std::string waits;          // the file that counts the server's waits; empty: not counted
    std::string name;           // of the server, for the line that is printed
    bool help = false;

    bool once = false;  // one message on each connection, after a line of input

    bool bounce = false;  // measure only the bounce and the chase, between these cores:
    int one_core = 0;
    int other_core = 1;
};

extern const char* const load_help;

struct bad_input : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Throws bad_input, whose message is one line for the user.
load_options parse_load_options(int argc, char** argv);

}  // namespace bench::net
