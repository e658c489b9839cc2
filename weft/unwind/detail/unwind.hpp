// unwind: runs every destructor on a stack that will never be resumed, then leaves it for the last
// time.
//
// Design: a suspended coroutine is killed by a resume whose word makes its yield call unwind(), an
// ordinary call that may unwind. From there every cleanup of every frame up to the entry runs
// exactly once, innermost first; then `finished` is called, which switches away.
//
//   end ->  +------------------+  <- not unwound: the caller of the entry
//           | entry            |  entry: u.end = __builtin_dwarf_cfa();
//           | body             |  cleanups run, from the bottom up
//           | helper           |
//           | yield            |
//           +------------------+  <- sp: yield calls unwind(u)
//
// The walk searches nothing and allocates nothing: a table, filled once per return address, states
// how each frame is left and whether it has a landing pad (see unwind_rules.hpp). A frame that the
// table cannot describe is left to _Unwind_ForcedUnwind, which is the only way on processors other
// than x86-64.
//
// To a body a kill looks like thread cancellation: `catch (...)` and
// `catch (abi::__forced_unwind&)` match, `throw;` continues it, std::uncaught_exceptions() counts
// it.
//
// Limits
// - A noexcept function between the suspension and the entry is reported to `refused` before
//   anything is destroyed, even if a catch (...) below it might have swallowed the unwind. A
//   coroutine that is suspended inside a destructor is the common case. A noexcept that shows in
//   machine code alone (Clang's; GCC's around a handler or an inlined cleanup) is seen on x86-64
//   only; on other processors the C++ runtime terminates when it reaches it.
// - If weft is built without exceptions, a frame with a cleanup is refused. The frames of code that
//   was itself built without exceptions have none, whatever their objects are.
// - A kill of a coroutine suspended inside a catch handler makes the C++ runtime allocate its
//   exception. The first kill through a return address decodes that frame and may allocate; both
//   need 6 KiB of stack.
// - Under ARM's EHABI the C++ runtime terminates when a kill comes to a catch (...) inside another
//   handler; a function of C with cleanups is held for one of C++, and its calls that have none are
//   refused as noexcept; a function without a table ends the program, after the cleanups below it.
// - If a shadow stack is active (CET SHSTK), only _Unwind_ForcedUnwind is used.
// - `finished` is entered on a stack on which TSan has seen no return: give a fresh TSan fiber to
//   the next code that runs there.
//
// Model: none, what is shared is fast_unwind's flag, which guards nothing.
#pragma once

#include <cstdint>

#include "weft/base/platform.hpp"

namespace weft::detail {

// The unwinder's part of an exception: _Unwind_Exception, whose size in <unwind.h> changes with
// -mavx512f, so it may not be part of a layout. Forced unwinding owns `stop` and `stop_argument`.
// ARM's is longer.
struct alignas(WEFT_ARM ? 8 : 16) unwind_header {
    std::uint64_t exception_class = 0;
    void (*cleanup)(int reason, unwind_header*) = nullptr;
    std::uintptr_t stop = 0;
#if WEFT_ARM
    std::uintptr_t personality = 0;
    std::uintptr_t call_site = 0;
#endif
    std::uintptr_t stop_argument = 0;  // the unwinding
#if WEFT_ARM
    std::uintptr_t caches[15] = {};  // of the unwinder's
#endif
};

// The unwinding of one stack. It is stored outside the stack that it unwinds, and may be used
// again. Nothing else is shared, so an unwinding may run inside a destructor that another one runs.
//
// Its header has the offset that it has in an exception of the C++ runtime. The runtime reads the
// type of an exception without checking that the exception is its own: here it reads `type`. That
// keeps std::terminate() in a handler from crashing.
struct unwinding {
    const void* type = nullptr;

    // Set by the owner, before unwind().
    void* end = nullptr;  // the CFA of the last frame to be unwound
    // All cleanups have run: leave this stack. Does not return.
    void (*finished)(unwinding&) noexcept = nullptr;
    // A catch (...) ended without rethrowing: call unwind() again at the next suspension.
    void (*swallowed)(unwinding&) noexcept = nullptr;
    // The frame at pc is in the way; nothing was destroyed. Does not return.
    void (*refused)(unwinding&, const char* why, void* pc) noexcept = nullptr;

    // Set by unwind().
    unwind_header* exception = nullptr;  // &header, or that of an exception of the C++ runtime's
    void (*runtime_cleanup)(int reason, unwind_header*) = nullptr;  // of the latter
#if !WEFT_ARM
    std::uintptr_t slow_until = 0;  // at a lower sp the table is not used
#endif
    unsigned uncaught_before = 0;  // std::uncaught_exceptions() at the start
    unwind_header header = {};
#if WEFT_ARM
    void* in_cleanup_before = nullptr;  // the runtime's exceptions whose cleanups run
#endif
};

// Called on the stack that is to be unwound, in a frame that will not be resumed. May unwind: the
// caller's own cleanups run too. If it is not called, its code is its only cost.
[[noreturn]] WEFT_NOINLINE void unwind(unwinding& u) __asm__("weft_unwind");

// The name of the function at pc, or null if it is not in the dynamic symbol table.
const char* function_at(void* pc) noexcept;

}  // namespace weft::detail
