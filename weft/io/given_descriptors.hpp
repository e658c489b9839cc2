// given_descriptors: what the program was started with, besides its standard streams: the sockets
// of socket activation (LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, as sd_listen_fds(3) has them).
//
//   const auto given = weft::given_descriptors().value();
//   for (const weft::given_descriptor& d : given)
//       if (d.name == "http") http = weft::tcp_listener::adopt(d.number).value();
//
// What starts a program so keeps its listener open over a restart: clients wait to be accepted
// meanwhile, and none is refused.
#pragma once

#include <string>
#include <vector>

#include "weft/base/result.hpp"

namespace weft {

struct given_descriptor {
    int number = -1;   // the caller's to adopt or to close
    std::string name;  // of LISTEN_FDNAMES; "unknown": it has none
};

enum class environment { unset, keep };

// In the order of their numbers, which are 3 and those above; none if the process is not the one
// they are meant for. They do not stay open on exec any more, and the three variables are unset,
// also where it fails, so that no child takes them for its own: getenv and setenv of other threads
// must not run meanwhile. With environment::keep they stay, and a second call finds the same. Does
// not wait. invalid_argument: the variables are no such; bad_file_descriptor: a number is not open.
result<std::vector<given_descriptor>> given_descriptors(environment = environment::unset);

}  // namespace weft
