// steps: what a piece of code is to the processor, instruction by instruction.
//
// The processor's trap flag stops the program before each instruction; a handler of SIGTRAP
// inspects the instruction. So counts are exact, and every `ret` can be held against the stack of
// calls by which a processor predicts it: a foreign one goes elsewhere than the last call that has
// not returned.
//
// Limits: x86-64 Linux, one thread; a microsecond an instruction.
//
//   const steps s = count_steps([&] { c.resume(); });
//   EXPECT_EQ(s.foreign_returns, 0u);
#pragma once

#include "weft/base/platform.hpp"

#define WEFT_TEST_STEPS (WEFT_X86_64 && WEFT_LINUX && !WEFT_ASAN && !WEFT_TSAN)

#if WEFT_TEST_STEPS
#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft {

struct steps {
    unsigned instructions = 0;
    unsigned calls = 0;
    unsigned returns = 0;
    unsigned foreign_returns = 0;
};

namespace stepping {

inline steps seen;
inline bool was_call = false;
inline std::uint64_t predicted[64] = {};
inline std::size_t depth = 0;

// The first byte behind the prefixes, and how the byte after it extends it.
inline void look_at(const unsigned char* pc, const std::uint64_t* sp) {
    if (was_call && depth < 64) predicted[depth++] = *sp;
    while (*pc == 0x66 || *pc == 0xf2 || *pc == 0xf3 || *pc == 0x3e || (*pc & 0xf0) == 0x40) ++pc;
    was_call = *pc == 0xe8 || (*pc == 0xff && (pc[1] & 0x38) == 0x10);
    seen.calls += was_call;
    ++seen.instructions;
    if (*pc != 0xc3 && *pc != 0xc2) return;
    ++seen.returns;
    seen.foreign_returns += depth == 0 || predicted[--depth] != *sp;
}

inline void on_trap(int, siginfo_t*, void* where) {
    const auto& r = static_cast<const ucontext_t*>(where)->uc_mcontext.gregs;
    look_at(reinterpret_cast<const unsigned char*>(r[REG_RIP]),
            reinterpret_cast<const std::uint64_t*>(r[REG_RSP]));
}

// Away from the red zone of the function that it is inlined in.
#define WEFT_TEST_SET_TRAP_FLAG(change)                         \
    asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\t" change \
                 "\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::       \
                     : "memory", "cc")

}  // namespace stepping

// Of one call of f, and of what turns the steps off.
template <class F>
steps count_steps(F f) {
    alignas(16) static char memory[64 * 1024];
    stack_t own = {}, before = {};
    own.ss_sp = memory;
    own.ss_size = sizeof memory;
    sigaltstack(&own, &before);
    struct sigaction trap = {}, old = {};
    trap.sa_sigaction = stepping::on_trap;
    trap.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &trap, &old);
    stepping::seen = {};
    stepping::was_call = false;
    stepping::depth = 0;
    WEFT_TEST_SET_TRAP_FLAG("orl $0x100, (%%rsp)");
    f();
    WEFT_TEST_SET_TRAP_FLAG("andl $~0x100, (%%rsp)");
    const steps result = stepping::seen;
    sigaction(SIGTRAP, &old, nullptr);
    sigaltstack(&before, nullptr);
    return result;
}

}  // namespace weft
#endif
