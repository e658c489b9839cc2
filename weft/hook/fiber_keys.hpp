// fiber_keys: what pthread_getspecific() and pthread_setspecific() mean in a fiber: each fiber has
// values of its own, and the destructors of its keys run when it ends, on its stack.
//
// Its one idea: a library that keeps its state by thread (the error queue of OpenSSL, a handle that
// is made once) keeps it by fiber, and none sees what another left. On a plain thread a key is as
// ever.
//
// Not so the keys that were made before the program's own constructors ran: those are of whoever
// serves malloc, of a sanitizer, of the C++ runtime, and mean the thread.
#pragma once

namespace weft::hook {

void keys_are_of_fibers_from_now_on() noexcept;

}  // namespace weft::hook
