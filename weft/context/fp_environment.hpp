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

#include <bit>
#include <cstdint>

#include "weft/base/platform.hpp"

#if !WEFT_X86_64
#include <cfenv>
#endif

namespace weft {

enum class fp_environment : std::uint8_t {
    own,     // each coroutine has its own; a fresh one starts with its first resumer's
    shared,  // a coroutine runs with its resumer's and must restore it before it suspends
};

namespace detail {

#if WEFT_X86_64 || WEFT_I386
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
#else
// fp_register: where the processor has the control bits. `control` are those; the others of the
// register are results, like the sticky exception flags.
struct fp_register {
#if WEFT_AARCH64
    using bits = std::uint32_t;  // of FPCR; its upper half has no bit that is in use
    static constexpr bits control = ~bits{0};

    static WEFT_ALWAYS_INLINE bits read() noexcept {
        std::uint64_t now;
        asm volatile("mrs %0, fpcr" : "=r"(now));
        return static_cast<bits>(now);
    }
    static WEFT_ALWAYS_INLINE void write(bits b) noexcept {
        asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{b}));
    }
#elif WEFT_RISCV64
#if defined(__riscv_flen)
    using bits = std::uint32_t;
    static constexpr bits control = 7;  // frm, the rounding mode alone of fcsr

    static WEFT_ALWAYS_INLINE bits read() noexcept {
        std::uint64_t now;
        asm volatile("frrm %0" : "=r"(now));
        return static_cast<bits>(now);
    }
    static WEFT_ALWAYS_INLINE void write(bits b) noexcept { asm volatile("fsrm %0" : : "r"(b)); }
#else
    using bits = std::uint32_t;
    static constexpr bits control = 0;
    static bits read() noexcept { return 0; }
    static void write(bits) noexcept {}
#endif
#elif WEFT_ARM
    using bits = std::uint32_t;
    // FPSCR: half-precision format, default NaN, flush-to-zero (also of half precision), rounding,
    // vector length and stride, traps.
    static constexpr bits control = 0x07ff9f00;

    static WEFT_ALWAYS_INLINE bits read() noexcept {
        bits now;
        asm volatile("vmrs %0, fpscr" : "=r"(now));
        return now;
    }
    static WEFT_ALWAYS_INLINE void write(bits b) noexcept {
        asm volatile("vmsr fpscr, %0" : : "r"(b));
    }
#elif WEFT_S390X
    using bits = std::uint32_t;
    static constexpr bits control = 0xfc000077;  // FPC: traps, decimal and binary rounding

    static WEFT_ALWAYS_INLINE bits read() noexcept {
        bits now;
        asm volatile("efpc %0" : "=r"(now));
        return now;
    }
    static WEFT_ALWAYS_INLINE void write(bits b) noexcept { asm volatile("sfpc %0" : : "r"(b)); }
#elif WEFT_PPC64LE
    using bits = std::uint64_t;
    // FPSCR: decimal rounding; traps, the non-IEEE mode and binary rounding.
    static constexpr bits control = 0x7000000ff;

    static WEFT_ALWAYS_INLINE bits read() noexcept {
        double now;
        asm volatile("mffs %0" : "=d"(now));
        return std::bit_cast<bits>(now);
    }
    static WEFT_ALWAYS_INLINE void write(bits b) noexcept {
        asm volatile("mtfsf 255, %0, 1, 0" : : "d"(std::bit_cast<double>(b)));
    }
#else
    using bits = int;
    static constexpr bits control = -1;

    static bits read() noexcept { return std::fegetround(); }
    static void write(bits mode) noexcept { std::fesetround(mode); }
#endif
};

struct fp_control {
    fp_register::bits held;

    WEFT_ALWAYS_INLINE void read() noexcept { held = fp_register::read(); }
    // All that computes waits for a write of the register; for a read and a compare it does not.
    WEFT_ALWAYS_INLINE void write() const noexcept {
        const fp_register::bits now = fp_register::read();
        if (((now ^ held) & fp_register::control) != 0)
            fp_register::write((now & ~fp_register::control) | (held & fp_register::control));
    }
    bool is_current() const noexcept {
        return ((fp_register::read() ^ held) & fp_register::control) == 0;
    }
};
#endif

}  // namespace detail
}  // namespace weft
