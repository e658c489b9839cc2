// fp_environment: the processor's control of floating point: rounding mode, masks, flush-to-zero.
//
// Design: the ABI calls these control bits callee-saved, so they belong to the agent that set them:
// under fp_environment::own, the default, each side of a switch keeps its own.
// fp_environment::shared does not save them and is the fast path (docs/benchmarks.md): a coroutine
// that sets a rounding mode and suspends under it would change its resumer's, which a debug build
// reports.
//
// Limits: a switch by assembly does not touch the control bits: the owner of a context reads them
// before it and writes them after it. On processors without one here the rounding mode alone is
// kept.
//
//   weft::detail::fp_control mine;
//   mine.read();
//   weft::switch_to(here, there, word);
//   mine.write();
#pragma once

#include <cstdint>

#include "weft/base/platform.hpp"

#if !WEFT_X86_64 && !WEFT_AARCH64
#include <cfenv>
#endif

namespace weft {

enum class fp_environment : std::uint8_t {
    own,     // each coroutine has its own; a fresh one starts with its first resumer's
    shared,  // a coroutine runs with its resumer's and must restore it before it suspends
};

namespace detail {

#if WEFT_X86_64
// Six bytes, so that it fits after a state word in a control block.
struct __attribute__((packed, aligned(2))) fp_control {
    std::uint16_t x87;
    std::uint32_t mxcsr;

    // In place: a copy of bytes just stored waits for the store, longer than all the rest takes.
    WEFT_ALWAYS_INLINE void read() noexcept {
        asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
    }
    WEFT_ALWAYS_INLINE void write() const noexcept {
        asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87));
    }
    // The six sticky exception flags of mxcsr are results, not control.
    bool is_current() const noexcept {
        constexpr std::uint32_t flags = 0x3f;
        fp_control now;
        now.read();
        return (mxcsr & ~flags) == (now.mxcsr & ~flags) && x87 == now.x87;
    }
};
#elif WEFT_AARCH64
// FPCR: rounding, flush-to-zero, traps. The sticky exception flags are in another register (FPSR).
struct fp_control {
    std::uint32_t fpcr;

    WEFT_ALWAYS_INLINE void read() noexcept { fpcr = current(); }
    // All that computes must see what is written here, so a write of the same value is left out.
    WEFT_ALWAYS_INLINE void write() const noexcept {
        if (fpcr != current()) asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{fpcr}));
    }
    bool is_current() const noexcept { return fpcr == current(); }

private:
    static WEFT_ALWAYS_INLINE std::uint32_t current() noexcept {
        std::uint64_t now;
        asm volatile("mrs %0, fpcr" : "=r"(now));
        return static_cast<std::uint32_t>(now);  // the upper half has no bit that is in use
    }
};
#else
struct fp_control {
    int rounding;

    void read() noexcept { rounding = std::fegetround(); }
    void write() const noexcept { std::fesetround(rounding); }
    bool is_current() const noexcept { return rounding == std::fegetround(); }
};
#endif

}  // namespace detail
}  // namespace weft
