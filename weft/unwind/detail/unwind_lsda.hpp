// lsda: what a C or C++ function's exception table states about one of its calls, for a forced
// unwind.
//
// The result is the one of libstdc++'s and libgcc's personality routines for _UA_FORCE_UNWIND:
// cleanups run, `catch (...)` and `catch (abi::__forced_unwind&)` match, a call that C++ code does
// not list may not be unwound (it is inside noexcept), a call that C code does not list has nothing
// to run.
#pragma once

#include <cstdint>

#include "weft/unwind/detail/unwind_dwarf.hpp"

namespace weft::detail {

struct landing {
    const char* why = nullptr;  // set: may not be unwound
    std::uintptr_t pad = 0;     // 0: nothing to run
    std::int32_t selector = 0;
    bool known = true;  // false: an encoding that is not read here
};

enum class table_language { c, cpp };

// `call` is an address within the call instruction, bases.function is the start of the function.
landing read_lsda(const void* lsda, std::uintptr_t call, const dwarf_bases& bases,
                  table_language language) noexcept;

// Whether the landing pad, entered with this selector, always ends in std::terminate(). Clang
// compiles noexcept that way, and so does GCC if it inlined a cleanup into a noexcept function.
// Read from the machine code; false if that cannot be decoded.
bool pad_terminates(std::uintptr_t pad, std::int32_t selector) noexcept;

}  // namespace weft::detail
