// handlers: the handlers of signals that a program sets, each behind a function of weft's own that
// calls it and then notes that it has run (interruption.hpp).
//
// Design: the disposition is the system's, flags and mask included; only the address differs. Where
// the system shows weft's function, the program is shown its own:
//
//      sigaction(n, {handler, flags}) ---> the table: handler of n   the system: plain, flags
//      sigaction(n, null, &old)       <--- handler of n, old flags <--- plain
//
// Two such functions exist, one for handlers with SA_SIGINFO and one for those without, so that a
// signal which comes in the middle of a change calls no function of the other kind.
//
// Limits: signals that report an error of the running code (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
// SIGTRAP, SIGSYS, SIGABRT) are the program's alone. A handler that never returns (longjmp) ends no
// wait. Handlers that were set before the hooks existed, or by a call that is not hooked, end no
// wait either.
//
// Model: none, each handler is one word, and the order of changes is the system's.
#pragma once

#include <signal.h>

namespace weft::hook {

// As libc's, for the program.
int set_handler(int signal, const struct ::sigaction* wanted, struct ::sigaction* before) noexcept;

}  // namespace weft::hook
