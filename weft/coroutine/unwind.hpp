// unwind: runs every destructor on a stack that will never be resumed, then leaves it for good.
//
// Its one idea: a suspended coroutine is killed by resuming it with a word that makes its yield
// call unwind(), an ordinary call that may unwind. From there every cleanup of every frame up to
// the entry runs exactly once, innermost first, and `finished` is called, which switches away.
//
//   end ->  +------------------+  <- not unwound: whatever called the entry
//           | entry            |  entry: u.end = __builtin_dwarf_cfa();
//           | body             |  cleanups run, from the bottom up
//           | helper           |
//           | yield            |
//           +------------------+  <- sp: yield calls unwind(u)
//
// Nothing is searched for and nothing is allocated: the walk knows from a table, filled once per
// return address, how each frame is left and whether it has a landing pad (see unwind_rules.hpp). A
// frame that the table cannot describe is left to _Unwind_ForcedUnwind, which is also all there is
// on other processors than x86-64.
//
// What a body sees is what it sees of thread cancellation: `catch (...)` and `catch
// (abi::__forced_unwind&)` match, `throw;` goes on, std::uncaught_exceptions() counts it.
//
// Limits
// - A noexcept function between the suspension and the entry is reported to `refused` before
//   anything is destroyed, also where a catch (...) below it might have swallowed the unwind. A
//   coroutine that is suspended inside a destructor is the common case. Where noexcept shows in
//   machine code alone (Clang's; GCC's around a handler or an inlined cleanup) it is seen on x86-64
//   only; elsewhere the C++ runtime terminates on reaching it.
// - Where weft is built without exceptions, a frame with a cleanup is refused. Frames of code that
//   was itself built so have none, whatever their objects are.
// - A kill from inside a catch handler lets the C++ runtime allocate its exception. The first kill
//   through a return address decodes that frame and may allocate; both want 6 KiB of stack.
// - Where a shadow stack is active (CET SHSTK) only _Unwind_ForcedUnwind is used.
// - `finished` is entered on a stack on which TSan has seen no return: give a fresh TSan fiber to
//   whatever runs there next.
//
// Model: none, what is shared is fast_unwind's flag, which guards nothing.
#pragma once

#include <cstdint>

#include "weft/base/platform.hpp"

namespace weft::detail {

// What the unwinder knows of an exception: _Unwind_Exception, whose size in <unwind.h> changes with
// -mavx512f and may therefore not be part of a layout. Forced unwinding owns the last two words.
struct alignas(16) unwind_header {
    std::uint64_t exception_class;
    void (*cleanup)(int reason, unwind_header*);
    std::uintptr_t stop;
    std::uintptr_t stop_argument;  // the unwinding
};

// One stack's unwinding. Lives away from what is unwound, and may be used again; nothing else is
// shared, so an unwinding may run inside a destructor that another one runs.
//
// Its header stands where the C++ runtime has it in an exception of its own: what the runtime
// carelessly reads of one that is not, its type, is `type`. That keeps std::terminate() in a
// handler from crashing.
struct unwinding {
    const void* type = nullptr;

    // Set by the owner, before unwind().
    void* end = nullptr;  // the CFA of the last frame to be unwound
    // All cleanups have run: leave this stack. Does not return.
    void (*finished)(unwinding&) noexcept = nullptr;
    // A catch (...) ended without rethrowing: call unwind() again at the next suspension.
    void (*swallowed)(unwinding&) noexcept = nullptr;
    // The frame at pc stands in the way; nothing was destroyed. Does not return.
    void (*refused)(unwinding&, const char* why, void* pc) noexcept = nullptr;

    // Set by unwind().
    unwind_header* exception = nullptr;  // &header, or that of an exception of the C++ runtime's
    void (*runtime_cleanup)(int reason, unwind_header*) = nullptr;  // of the latter
    std::uintptr_t slow_until = 0;  // at a lower sp the table is of no use
    unsigned uncaught_before = 0;   // std::uncaught_exceptions() at the start
    unwind_header header = {};
};

// Call it from the stack that is to be unwound, in a frame that is suspended for good. May unwind:
// the caller's own cleanups run too. No cost but its code where it is not called.
[[noreturn]] WEFT_NOINLINE void unwind(unwinding& u) __asm__("weft_unwind");

// The name of the function at pc, or null where the dynamic symbol table does not know it.
const char* function_at(void* pc) noexcept;

}  // namespace weft::detail
