// The overflow report: one line that says which coroutine ran out of stack.
//
// A coroutine that goes below its limit touches the guard and gets SIGSEGV, on a stack that has no
// room for a handler; each thread therefore needs an alternate signal stack. The handler asks
// describe_overflow which coroutine is running (this layer knows no coroutines), prints
//
//   weft: stack overflow in coroutine 17 "login" (64 KiB stack at 0x7f...; try 128 KiB or more)
//
// and then does what would have been done without it: the program's own handler is called if there
// was one when the report was installed, else the program dies by the signal, with its core. A
// fault that is no overflow goes there without a word.
//
//      fault --> overflow handler --no overflow--> the former handler, or the default action
//                      |                              ^
//                      +-- overflow: one line --------+
//
// Everything a handler does is async-signal-safe. A handler installed later than ours decides
// itself whether it calls ours.
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

struct overflow_info {
    party who{.kind = "coroutine"};
    const void* limit = nullptr;     // of its stack
    std::size_t stack_bytes = 0;     // as it was asked for
    std::size_t guard_bytes = 4096;  // a fault so far below the limit is an overflow
};

// Describes the coroutine that runs on this thread, and its stack; false if no code that weft knows
// is running. Called in a signal handler on the faulting thread.
using describe_overflow = bool (*)(const void* fault_address, overflow_info&) noexcept;

// The first call installs the handler for SIGSEGV and SIGBUS; each call sets the function that the
// handler asks. Prepares the calling thread too.
void install_overflow_report(describe_overflow) noexcept;

// Gives the thread an alternate signal stack if it has none, and takes it away when the thread
// ends. Without memory for it the report is missing, nothing else. Cheap when repeated.
void prepare_thread_for_overflow_report() noexcept;

}  // namespace weft
