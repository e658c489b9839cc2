// given_descriptors: the descriptors that the program was started with besides its standard
// streams: the sockets of socket activation (LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, as in
// sd_listen_fds(3)).
//
// Design: a service manager that starts a program like this keeps the listener open over a restart:
// clients wait to be accepted meanwhile, and none is refused.
//
// Limits: the caller adopts or closes each descriptor. No other thread calls getenv or setenv
// meanwhile.
//
//   const auto given = weft::given_descriptors().value();
//   for (const weft::given_descriptor& d : given)
//       if (d.name == "http") http = weft::tcp_listener::adopt(d.number).value();
#pragma once

#include <string>
#include <vector>

#include "weft/base/result.hpp"

namespace weft {

struct given_descriptor {
    int number = -1;   // for the caller to adopt or to close
    std::string name;  // from LISTEN_FDNAMES; "unknown" if it has none
};

enum class environment { unset, keep };  // what becomes of the LISTEN_ variables

// In ascending order, from fd 3 on; none if the variables name another process. The descriptors are
// set to close on exec, and the three variables are unset, also on failure, so that no child takes
// them for its own: no other thread may call getenv or setenv meanwhile. With environment::keep the
// variables stay, and a second call returns the same. Does not wait. invalid_argument: a variable
// cannot be parsed; bad_file_descriptor: an fd is not open.
result<std::vector<given_descriptor>> given_descriptors(environment = environment::unset);

}  // namespace weft
