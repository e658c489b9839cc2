// The floating-point environment: rounding mode, masks, flush-to-zero.
//
// The ABI calls these control bits callee-saved, so they belong to the party that set them: under
// fp_environment::own, the default, each side of a switch keeps its own. fp_environment::shared
// leaves them alone and is the fast path (docs/benchmarks.md): a coroutine that sets a rounding mode
// and suspends under it would change its resumer's, which a debug build reports.
//
//   const auto mine = weft::detail::fp_control::read();
//   switch_to(...);
//   mine.write();
#pragma once

#include <cstdint>

#include "weft/base/platform.hpp"

#if !WEFT_X86_64
#include <cfenv>
#endif

namespace weft {

enum class fp_environment : std::uint8_t {
    own,     // each coroutine has its own; a fresh one begins with its first resumer's
    shared,  // a coroutine runs with its resumer's and must leave it as it was
};

namespace detail {

#if WEFT_X86_64
struct fp_control {
    std::uint32_t mxcsr;
    std::uint16_t x87;

    static WEFT_ALWAYS_INLINE fp_control read() noexcept {
        fp_control c;
        asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(c.mxcsr), "=m"(c.x87));
        return c;
    }
    WEFT_ALWAYS_INLINE void write() const noexcept {
        asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87));
    }
    // The six sticky exception flags of mxcsr are results, not control.
    bool same_control(const fp_control& other) const noexcept {
        constexpr std::uint32_t flags = 0x3f;
        return (mxcsr & ~flags) == (other.mxcsr & ~flags) && x87 == other.x87;
    }
};
#else
struct fp_control {
    int rounding;

    static fp_control read() noexcept { return {std::fegetround()}; }
    void write() const noexcept { std::fesetround(rounding); }
    bool same_control(const fp_control& other) const noexcept {
        return rounding == other.rounding;
    }
};
#endif

}  // namespace detail
}  // namespace weft
