// sides: a program run once, by threads or by fibers of one loop over one of the drivers.
//
//      director --- step ---> actor --- the call ---> answer, or it waits
//          ^                                            |
//          +--- all have answered, or a while is over --+
//
// Design: one step is started at a time, and the next when everything that it could end has ended,
// so that a program's output does not depend on the schedule. A call that has not answered by then
// waits; a later step may end it. The delay is milliseconds, so a slow machine can take a slow call
// for a waiting one: a difference must be reproduced with longer delays (differs.hpp).
//
// The same code runs on both sides; it waits with weft's semaphores.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "test/hook/fuzz/program.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::testing::fuzz {

struct run_options {
    unsigned slowness = 1;  // factor of all times
    int planted = -1;       // the call that answers wrong in fibers; none
};

// A line for each step and each late answer.
using transcript = std::vector<std::string>;

transcript run_in_threads(const program& p, const run_options& o);
transcript run_in_fibers(const program& p, const run_options& o, io_kind driver);

// Handlers of signals, the guard of the loop's thread. Once in a process, before any run.
void begin_process();

// Which drivers there are.
const std::vector<io_kind>& drivers();
const char* name_of_driver(io_kind k);

}  // namespace weft::testing::fuzz
