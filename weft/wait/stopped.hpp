// stopped: what a wait throws when it ends because of a stop.
//
// Design: it is not derived from std::exception, so `catch (const std::exception&)` lets it pass.
//
// Limits: code that catches it nevertheless runs on: the stop is a state and not an event, and the
// next wait throws again.
//
//   try { work(); } catch (const weft::stopped& s) { log("stopped", s.reason); throw; }
#pragma once

#include "weft/stop/stop_source.hpp"

namespace weft {

struct stopped {
    stop_reason reason;
};

namespace detail {

// Ends the program where exceptions are off: there a wait that cannot return "stopped" is never
// stopped.
[[noreturn]] void throw_stopped(stop_reason reason);

}  // namespace detail
}  // namespace weft
