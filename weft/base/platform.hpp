// The only general #if's of weft: compiler, processor, operating system, sanitizers.
//
// Everything else asks this file, so that a port begins (and mostly ends) here, in context/ and in
// stack/. Each WEFT_ name below is always defined, to 0 or 1, so that a misspelt name is a warning
// under -Wundef and not a silent "no".
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__GNUC__)
#define WEFT_ALWAYS_INLINE inline __attribute__((always_inline))
#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_COLD __attribute__((noinline, cold))
#else
#error "weft needs GCC 12 or Clang 16, or a compiler that speaks their dialect"
#endif

// In front of a return of a call: a jump. A compiler that does not know the word makes one only
// where it optimises.
#if __has_cpp_attribute(clang::musttail)
#define WEFT_TAIL_CALL [[clang::musttail]]
#else
#define WEFT_TAIL_CALL
#endif

#if defined(__clang__)
#define WEFT_CLANG 1
#define WEFT_GCC 0
#else
#define WEFT_CLANG 0
#define WEFT_GCC 1
#endif

#if defined(__linux__)
#define WEFT_LINUX 1
#else
#define WEFT_LINUX 0
#endif

#if defined(__x86_64__) && !defined(__ILP32__)
#define WEFT_X86_64 1
#else
#define WEFT_X86_64 0
#endif

// WEFT_BACKEND_UCONTEXT is set by the build to select the portable switch; it is what remains where
// no assembly is written for a processor.
#if !defined(WEFT_BACKEND_UCONTEXT)
#if WEFT_X86_64 && WEFT_LINUX
#define WEFT_BACKEND_UCONTEXT 0
#else
#define WEFT_BACKEND_UCONTEXT 1
#endif
#endif

#if defined(__has_feature)
#define WEFT_HAS_FEATURE(x) __has_feature(x)
#else
#define WEFT_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || WEFT_HAS_FEATURE(address_sanitizer)
#define WEFT_ASAN 1
#else
#define WEFT_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || WEFT_HAS_FEATURE(thread_sanitizer)
#define WEFT_TSAN 1
#else
#define WEFT_TSAN 0
#endif

#if defined(__cpp_exceptions)
#define WEFT_EXCEPTIONS 1
#else
#define WEFT_EXCEPTIONS 0
#endif

#if defined(NDEBUG)
#define WEFT_DEBUG 0
#else
#define WEFT_DEBUG 1
#endif

namespace weft {

// The unit in which processors share memory. Fixed, not
// std::hardware_destructive_interference_size: a layout that changes with -mtune would be an ABI
// that changes with -mtune.
inline constexpr std::size_t cache_line_bytes = 64;

// Tells the processor that the thread spins. A hint, and nothing where none is known.
WEFT_ALWAYS_INLINE void cpu_pause() noexcept {
#if WEFT_X86_64
    __builtin_ia32_pause();
#endif
}

// Has a cache line fetched. A hint; any address will do. GCC takes a function that does nothing
// else for one without effect, and drops its calls: hence the second statement.
WEFT_ALWAYS_INLINE void prefetch(const void* p) noexcept {
    __builtin_prefetch(p);
    asm volatile("");
}
// The same for so many lines below that of p, and above.
WEFT_ALWAYS_INLINE void prefetch_around(const void* p, std::size_t below,
                                        std::size_t above) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(p) - below * cache_line_bytes;
    for (std::size_t i = 0; i <= below + above; ++i)
        prefetch(reinterpret_cast<const void*>(at + i * cache_line_bytes));
}

}  // namespace weft
