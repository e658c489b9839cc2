// trial: one style under load, its server and its client each in a process of its own.
//
//   this process
//     |-- server   loop and sessions; its peak RSS is that of the style alone
//     '-- client   load, verification, rude endings; it stays until the server has ended
//
// Always ends: both are killed when they take too long, when this process is interrupted, and when
// it dies.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace echo {

// Thrown when SIGINT or SIGTERM came; nothing is left running by then.
struct interrupted {
    int signal;
};

// Throws bad_input and interrupted. `interrupts_fd` is that of process.hpp.
trial_report run_trial(const style& s, const options& o, int interrupts_fd);

}  // namespace echo
