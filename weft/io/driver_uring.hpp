// driver_uring: completion by io_uring.
//
// Design: calls go into a ring that the system reads, results into one that the loop reads; one
// system call submits all that has accumulated and sleeps. Descriptors other than sockets are
// waited for by readiness in the same ring, with a multishot poll.
//
// Limits: a ring belongs to one thread: the thread that first ran the driver, or called
// native_handle(), runs it to its end. In a foreign loop, from the call of native_handle() on,
// descriptors other than sockets are waited for by the driver of the library's own thread.
//
//   const char* why = nullptr;
//   if (auto d = weft::make_driver_uring(&why)) weft::loop l(std::move(d));
//   else log(why);
//
// Model: test/model/ring_endings_test.cpp
// TODO(test): told_, beside the call of native_handle() that makes it, under the model.
#pragma once

#include <memory>

#include "weft/io/io_driver.hpp"

namespace weft {

// Null if the system or the build has no io_uring; `why` names the reason.
std::unique_ptr<io_driver> make_driver_uring(const char** why);

}  // namespace weft
