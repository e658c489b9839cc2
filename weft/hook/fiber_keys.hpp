// fiber_keys: what pthread_getspecific() and pthread_setspecific() mean in a fiber: each fiber has
// values of its own, and the destructors of its keys run when it ends, on its stack.
//
// Design: a library that keeps its state by thread (the error queue of OpenSSL, a handle that is
// made once) keeps it by fiber, and none sees what another left. On a plain thread a key is as
// ever.
//
// Not so the keys that were made before the program's own constructors ran, and at any time by the
// shared object that serves malloc: those are an allocator's, a sanitizer's, the C++ runtime's, and
// mean the thread.
#pragma once

#include <pthread.h>

namespace weft::hook {

void keys_are_of_fibers_from_now_on() noexcept;

// Whether the code there is of the shared object that serves malloc; the program itself is none.
bool makes_keys_of_threads(const void* code) noexcept;

// pthread_key_create(), called by the code there.
int make_key(pthread_key_t* key, void (*destroy)(void*), const void* maker);

}  // namespace weft::hook
