// driver_uring: completion by io_uring.
//
// Its one idea: calls are put into a ring that the system reads, and results into one that the loop
// reads; one system call hands over whatever has gathered and sleeps. What is no socket
// is waited for by readiness in the same ring (a poll that stays).
//
// Calls belong to one thread: the one that first ran the driver, or asked for native_handle(), runs
// it to its end. In a foreign loop what is no socket is waited for by the driver of the library's
// own thread, from the call of native_handle() on.
//
// Model: test/model/ring_endings_test.cpp
// TODO(test): told_, beside the call of native_handle() that makes it, under the model.
#pragma once

#include <memory>

#include "weft/io/io_driver.hpp"

namespace weft {

// Null where the system or the build has no io_uring; `why` says which.
std::unique_ptr<io_driver> make_driver_uring(const char** why);

}  // namespace weft
