// overflow: the report that names, in one line, the coroutine that ran out of stack.
//
// Design: a coroutine that goes below its limit touches the guard and gets SIGSEGV, on a stack that
// has no room for a handler; each thread therefore needs an alternate signal stack. The handler
// calls describe_overflow to find the running coroutine (this layer knows no coroutines), prints
//
//   weft: stack overflow in coroutine 17 "login" (64 KiB stack at 0x7f...; try 128 KiB or more)
//
// and then acts as if it were not installed: the program's own handler is called if there was one
// when the report was installed, else the signal ends the program, with its core. A fault that is
// not an overflow is passed on without a message.
//
//      fault --> overflow handler --no overflow--> the former handler, or the default action
//                      |                              ^
//                      +-- overflow: one line --------+
//
// Everything a handler does is async-signal-safe.
//
// Limits: a handler installed later than ours decides itself whether it calls ours. A thread that
// was not prepared has no report.
//
//   weft::install_overflow_report(describe);         // once, any thread
//   weft::prepare_thread_for_overflow_report();      // each thread that runs coroutines
//
// Model: none, each call stores one pointer, and the handler comes after what else it reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/assert.hpp"

namespace weft {

// Which stack has overflowed.
struct overflow_info {
    agent_info who{.kind = "coroutine"};
    const void* limit = nullptr;     // of its stack
    std::size_t stack_bytes = 0;     // the requested size
    std::size_t guard_bytes = 4096;  // a fault up to this far below the limit is an overflow
};

// Describes the coroutine that runs on this thread, and its stack; false if no code that weft knows
// is running. Called in a signal handler on the faulting thread.
using describe_overflow = bool (*)(const void* fault_address, overflow_info&) noexcept;

// The first call installs the handler for SIGSEGV and SIGBUS; each call sets the function that the
// handler calls. Prepares the calling thread too.
void install_overflow_report(describe_overflow) noexcept;

// Gives the thread an alternate signal stack if it has none, and removes it when the thread ends.
// If there is no memory for it, only the report is missing. Cheap when repeated.
void prepare_thread_for_overflow_report() noexcept;

}  // namespace weft
