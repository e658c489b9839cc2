// is_linked() and enable() of fast_unwind, which are there also where it is not linked.
//
// Model: none, a flag that guards nothing.
#include <unwind.h>

#include "weft/unwind/fast_unwind/fast_unwind.hpp"

// A program may have no unwinder at all.
#pragma weak _Unwind_Resume

extern "C" {
// Defined where weft::fast_unwind is linked.
[[gnu::weak]] extern bool weft_fast_unwind_enabled;
[[gnu::weak]] extern void weft_fast_unwind_stub() noexcept;
}

namespace weft::fast_unwind {

bool is_linked() noexcept {
    return &weft_fast_unwind_stub != nullptr &&
           reinterpret_cast<void (*)()>(&_Unwind_Resume) == &weft_fast_unwind_stub;
}

void enable(bool on) noexcept {
    // Relaxed: it guards nothing.
    if (&weft_fast_unwind_enabled != nullptr)
        __atomic_store_n(&weft_fast_unwind_enabled, on, __ATOMIC_RELAXED);
}

}  // namespace weft::fast_unwind
