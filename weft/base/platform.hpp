// platform: the only general #if's of weft: compiler, processor, operating system, sanitizers.
//
// Design: everything else asks this file, so that a port begins (and mostly ends) here, in context/
// and in stack/. Each WEFT_ name below is always defined, to 0 or 1, so that a misspelt name is a
// warning under -Wundef and not a silent "no".
//
// Limits: the names say how this translation unit is compiled. One that is compiled otherwise than
// the library does not link (built_alike.cpp).
//
//   #if WEFT_LINUX
//   use("inotify");
//   #endif
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

// By MinGW-w64, for x86-64.
#if defined(_WIN32)
#define WEFT_WINDOWS 1
#else
#define WEFT_WINDOWS 0
#endif

#if defined(__x86_64__) && !defined(__ILP32__)
#define WEFT_X86_64 1
#else
#define WEFT_X86_64 0
#endif

#if defined(__aarch64__) && !defined(__ILP32__)
#define WEFT_AARCH64 1
#else
#define WEFT_AARCH64 0
#endif

#if defined(__riscv) && __riscv_xlen == 64
#define WEFT_RISCV64 1
#else
#define WEFT_RISCV64 0
#endif

// Hard-float, in ARM or in Thumb-2 code.
#if defined(__arm__) && defined(__ARM_PCS_VFP) && (!defined(__thumb__) || defined(__thumb2__))
#define WEFT_ARM 1
#else
#define WEFT_ARM 0
#endif

#if defined(__i386__)
#define WEFT_I386 1
#else
#define WEFT_I386 0
#endif

#if defined(__s390x__)
#define WEFT_S390X 1
#else
#define WEFT_S390X 0
#endif

#if defined(__powerpc64__) && defined(__LITTLE_ENDIAN__) && defined(_CALL_ELF) && _CALL_ELF == 2
#define WEFT_PPC64LE 1
#else
#define WEFT_PPC64LE 0
#endif

// WEFT_BACKEND_UCONTEXT is set by the build to select the portable switch; it is what remains where
// no assembly is written for a processor.
#if !defined(WEFT_BACKEND_UCONTEXT)
#if WEFT_LINUX && (WEFT_X86_64 || WEFT_AARCH64 || WEFT_RISCV64 || WEFT_ARM || WEFT_I386 || \
                   WEFT_S390X || WEFT_PPC64LE)
#define WEFT_BACKEND_UCONTEXT 0
#elif WEFT_WINDOWS && WEFT_X86_64
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

// How a file of the user's and the library must agree, since the switch is inlined into the user's:
// each file that includes weft refers to two symbols, which the library defines only where it was
// built alike (built_alike.cpp). The linker's message is then the reason. WEFT_BUILT_UNLIKE is set
// by the build for a file of the library that differs on purpose.
#if !defined(WEFT_BUILT_UNLIKE)
#define WEFT_BUILT_UNLIKE 0
#endif
#if WEFT_ASAN
#define WEFT_SANITIZED_LIKE weft_must_be_built_with_fsanitize_address_like_this_file
#elif WEFT_TSAN
#define WEFT_SANITIZED_LIKE weft_must_be_built_with_fsanitize_thread_like_this_file
#else
#define WEFT_SANITIZED_LIKE weft_must_be_built_without_a_sanitizer_like_this_file
#endif
#if WEFT_BACKEND_UCONTEXT
#define WEFT_SWITCHED_LIKE weft_must_be_built_with_the_ucontext_backend_like_this_file
#else
#define WEFT_SWITCHED_LIKE weft_must_be_built_with_the_asm_backend_like_this_file
#endif

// What the linker must keep although nothing uses it, also where it drops what is unused.
#if defined(__has_attribute)
#if __has_attribute(retain) && !WEFT_WINDOWS  // GCC knows the word there, and ignores it
#define WEFT_RETAINED __attribute__((used, retain))
#endif
#endif
#if !defined(WEFT_RETAINED)
#define WEFT_RETAINED __attribute__((used))
#endif

extern "C" const char WEFT_SANITIZED_LIKE;
extern "C" const char WEFT_SWITCHED_LIKE;

namespace weft {

#if !WEFT_BUILT_UNLIKE
// Two words of a program. They are in a namespace of the symbols' names, so that what is built
// otherwise has words of its own and the linker does not take one for the other.
namespace detail::built_alike {
namespace WEFT_SANITIZED_LIKE {
WEFT_RETAINED inline const char* const sanitized = &::WEFT_SANITIZED_LIKE;
}
namespace WEFT_SWITCHED_LIKE {
WEFT_RETAINED inline const char* const switched = &::WEFT_SWITCHED_LIKE;
}
}  // namespace detail::built_alike
#endif

// The unit in which processors share memory. Fixed, not
// std::hardware_destructive_interference_size: a layout that changes with -mtune would be an ABI
// that changes with -mtune.
inline constexpr std::size_t cache_line_bytes = 64;

// The processor hint for a thread that spins; nothing where no hint is known.
WEFT_ALWAYS_INLINE void cpu_pause() noexcept {
#if WEFT_X86_64
    __builtin_ia32_pause();
#elif WEFT_AARCH64
    asm volatile("yield");
#endif
}

// Has a cache line fetched. A hint; any address will do. GCC takes a function that does nothing
// else for one without effect, and drops its calls: hence the second statement.
WEFT_ALWAYS_INLINE void prefetch(const void* p) noexcept {
    __builtin_prefetch(p);
    asm volatile("");
}
// The same prefetch for `below` lines below that of p, and `above` lines above.
WEFT_ALWAYS_INLINE void prefetch_around(const void* p, std::size_t below,
                                        std::size_t above) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(p) - below * cache_line_bytes;
    for (std::size_t i = 0; i <= below + above; ++i)
        prefetch(reinterpret_cast<const void*>(at + i * cache_line_bytes));
}

}  // namespace weft
