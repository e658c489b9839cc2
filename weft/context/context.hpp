// context: the state of a suspended agent, and the switch from one agent to another.
//
// Design: the switch is inlined at its call site and declares every register clobbered, so that the
// compiler saves the live registers and no others. The registers that a compiler does not accept as
// clobbered (program counter, stack, frame and base pointer) are saved in the context, never on the
// stack.
//
// A context is the state that an agent saves when it stops running on its stack, and needs to
// continue there.
//
//     from.pc, sp, ...  <-  this agent        the word and the address of `from`
//     this agent        <-  to.pc, sp, ...    arrive with it, in registers
//
// One backend is chosen at configure time; all have the same interface and pass the same tests:
//   switch_x86_64_sysv.hpp     inline assembly, about ten instructions
//   switch_aarch64_aapcs.hpp   the same
//   switch_riscv64_lp64.hpp    the same
//   switch_arm_aapcs.hpp       the same
//   switch_i386_sysv.hpp       the same
//   switch_s390x_elf.hpp       the same
//   switch_ppc64le_elfv2.hpp   the same
//   switch_x86_64_windows.hpp  the same, and the bounds of the stack, which Windows wants to know
//   switch_ucontext.hpp        POSIX swapcontext, for other processors; it makes system calls
//
// Left to others: the source of stacks (stack/), the floating-point environment and the C++
// exception state (fp_environment.hpp and base/detail/exception_state.hpp; their owner decides
// when), sanitizers (annotated_context.hpp), and the check that the other agent may be resumed.
//
// Limits: a context belongs to one agent at a time. The switch does not touch thread-local state:
// code that migrates an agent between threads must not carry thread-local addresses across the
// switch (base/detail/tls.hpp). On the ucontext backend the floating-point environment always moves
// with the agent.
//
//   weft::context here, there;
//   weft::entry_point point{body, escaped, left};
//   weft::make_context(there, stack_top, point);
//   weft::arrival a = weft::switch_to(here, there, word);   // returns at a switch back to `here`
#pragma once

#include "weft/base/platform.hpp"

#if WEFT_BACKEND_UCONTEXT
#include "weft/context/detail/switch_ucontext.hpp"
#elif WEFT_WINDOWS && WEFT_X86_64
#include "weft/context/detail/switch_x86_64_windows.hpp"
#elif WEFT_X86_64
#include "weft/context/detail/switch_x86_64_sysv.hpp"
#elif WEFT_AARCH64
#include "weft/context/detail/switch_aarch64_aapcs.hpp"
#elif WEFT_RISCV64
#include "weft/context/detail/switch_riscv64_lp64.hpp"
#elif WEFT_ARM
#include "weft/context/detail/switch_arm_aapcs.hpp"
#elif WEFT_I386
#include "weft/context/detail/switch_i386_sysv.hpp"
#elif WEFT_S390X
#include "weft/context/detail/switch_s390x_elf.hpp"
#elif WEFT_PPC64LE
#include "weft/context/detail/switch_ppc64le_elfv2.hpp"
#else
#error "no switch for this processor: configure with WEFT_BACKEND=ucontext"
#endif
