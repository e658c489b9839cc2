// tls: a thread-local variable whose address no function can carry from one thread to another.
//
// A coroutine may suspend on one thread and resume on another. A compiler knows nothing of that: in
//
//   use(&per_thread);  suspend();  use(&per_thread);
//
// it may compute the address once, keep it in a register or on the stack, and so touch the first
// thread's variable from the second thread.
//
// Design: each access computes the address again, in a `volatile asm` which the compiler can
// neither merge with another nor move across one, and every switch of weft is one too. It costs two
// instructions and no call:
//
//   mov  %fs:0, p                 the thread pointer
//   add  var@gottpoff(%rip), p    plus an offset that is fixed when the program is loaded; the
//                                 linker makes it a constant in an executable
//
// That is the initial-exec model, which works in executables, PIE and shared libraries alike, also
// in one that is dlopen'ed as long as the variable is small (a few hundred bytes). On aarch64 it
// takes four instructions. Elsewhere, and with the ucontext backend, the access is a call of a
// function that is never inlined.
//
// The reference holds until the next suspension: use it at once, store it nowhere.
//
// Limits: the type is constant-initialised and trivially destructible. What must happen at thread
// exit is done by a second, ordinary thread_local in the .cpp.
//
//   // host.hpp, at global scope: type, unique C symbol, name of the accessor in weft::detail
//   WEFT_DECLARE_THREAD_LOCAL(weft::detail::host, weft_tls_host, this_host);
//   // host.cpp, at global scope
//   WEFT_DEFINE_THREAD_LOCAL(weft::detail::host, weft_tls_host);
//   // anywhere
//   weft::detail::this_host().depth += 1;
#pragma once

#include <type_traits>

#include "weft/base/platform.hpp"

// The symbol is reached by name from the asm, which link-time optimisation does not read: these
// attributes keep it as it is.
#if __has_attribute(externally_visible)
#define WEFT_KEEP_SYMBOL __attribute__((used, externally_visible))
#else
#define WEFT_KEEP_SYMBOL __attribute__((used))
#endif

#if defined(WEFT_MODEL) && WEFT_MODEL  // test/model: each thread of an execution has its own

#include <model/thread_local.hpp>

#define WEFT_DECLARE_THREAD_LOCAL(type, symbol, accessor)                                     \
    namespace weft::detail {                                                                  \
    struct symbol##_tag;                                                                      \
    inline type& accessor() noexcept { return model::thread_local_of<symbol##_tag, type>(); } \
    }                                                                                         \
    static_assert(true, "a semicolon follows")
#define WEFT_DEFINE_THREAD_LOCAL(type, symbol) static_assert(true, "a semicolon follows")

#else

// The contexts of the ucontext backend are too large for the 1 600 bytes or so that the loader has
// left for what is opened later. There the model is the general one, and each access is a call.
#if WEFT_BACKEND_UCONTEXT
#define WEFT_TLS_MODEL "global-dynamic"
#define WEFT_TLS_BY_OFFSET 0
#else
#define WEFT_TLS_MODEL "initial-exec"
#define WEFT_TLS_BY_OFFSET WEFT_LINUX
#endif

#define WEFT_DECLARE_THREAD_LOCAL(type, symbol, accessor)                                 \
    extern "C" __attribute__((tls_model(WEFT_TLS_MODEL),                                  \
                              visibility("default"))) constinit thread_local type symbol; \
    extern "C" type* symbol##_address() noexcept;                                         \
    namespace weft::detail {                                                              \
    WEFT_ALWAYS_INLINE type& accessor() noexcept {                                        \
        if constexpr (WEFT_X86_64 && WEFT_TLS_BY_OFFSET) {                                \
            type* p;                                                                      \
            asm volatile("movq %%fs:0, %0\n\taddq " #symbol "@gottpoff(%%rip), %0"        \
                         : "=r"(p)                                                        \
                         :                                                                \
                         : "cc");                                                         \
            return *p;                                                                    \
        } else if constexpr (WEFT_AARCH64 && WEFT_TLS_BY_OFFSET) {                        \
            type* p;                                                                      \
            std::uintptr_t offset;                                                        \
            asm volatile("mrs %0, tpidr_el0\n\tadrp %1, :gottprel:" #symbol               \
                         "\n\tldr %1, [%1, :gottprel_lo12:" #symbol "]\n\tadd %0, %0, %1" \
                         : "=&r"(p), "=&r"(offset));                                      \
            return *p;                                                                    \
        } else {                                                                          \
            return *symbol##_address();                                                   \
        }                                                                                 \
    }                                                                                     \
    }                                                                                     \
    static_assert(true, "a semicolon follows")

// The empty asm keeps the compiler from finding that two calls must give the same address.
#define WEFT_DEFINE_THREAD_LOCAL(type, symbol)             \
    extern "C" {                                           \
    WEFT_KEEP_SYMBOL constinit thread_local type symbol{}; \
    WEFT_NOINLINE type* symbol##_address() noexcept {      \
        asm volatile("" ::: "memory");                     \
        return &symbol;                                    \
    }                                                      \
    }                                                      \
    static_assert(std::is_trivially_destructible_v<type>, "nothing may run at thread exit")

#endif
