// What a C or C++ function's exception table (LSDA) says about one of its calls, for a forced
// unwind.
//
// The answer is the one that libstdc++'s and libgcc's personality routines give for
// _UA_FORCE_UNWIND: cleanups run, `catch (...)` and `catch (abi::__forced_unwind&)` match, a call
// that C++ code does not list may not be unwound (it is inside noexcept), one that C code does not
// list has nothing to run.
#pragma once

#include <cstdint>

#include "weft/coroutine/unwind_dwarf.hpp"

namespace weft::detail {

struct landing {
    const char* why = nullptr;  // set: may not be unwound
    std::uintptr_t pad = 0;     // 0: nothing to run
    std::int32_t selector = 0;
    bool known = true;  // false: an encoding that we do not read
};

enum class table_language { c, cpp };

// `call` lies within the call instruction, bases.function begins the function.
landing read_lsda(const void* lsda, std::uintptr_t call, const dwarf_bases& bases,
                  table_language language) noexcept;

// Does the landing pad, entered with this selector, do nothing in the end but std::terminate()?
// Clang writes noexcept that way, GCC where it inlined a cleanup into a noexcept function. Read
// from the machine code; false where that is not understood.
bool pad_terminates(std::uintptr_t pad, std::int32_t selector) noexcept;

}  // namespace weft::detail
