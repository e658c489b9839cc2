// pin: reports a fiber that is about to wait while it holds a mutex of pthreads (see hook.hpp).
//
// Model: none, a counter and a pointer, each read as a whole.
#pragma once

#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {

void report_pin(fiber_core& f, const char* what) noexcept;

// Before a wait.
inline void look_for_pin(fiber_core& f, const char* what) noexcept {
    if (f.foreign_locks != 0) [[unlikely]]
        report_pin(f, what);
}

}  // namespace weft::hook
