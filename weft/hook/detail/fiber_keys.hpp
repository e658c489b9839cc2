// fiber_keys: what pthread_getspecific() and pthread_setspecific() mean in a fiber: each fiber has
// values of its own, and the destructors of its keys run when it ends, on its stack.
//
// Design: a library that keeps its state per thread (the error queue of OpenSSL, a handle that is
// made once) keeps it per fiber here, and no fiber sees what another left. On a plain thread a key
// is unchanged.
//
// Exceptions are the keys that were made before the program's own constructors ran, and at any time
// by the shared object that serves malloc: those belong to an allocator, a sanitizer or the C++
// runtime, and mean the thread.
#pragma once

#include <pthread.h>

namespace weft::hook {

void keys_are_of_fibers_from_now_on() noexcept;

// Whether the code there belongs to the shared object that serves malloc; never to the program
// itself.
bool makes_keys_of_threads(const void* code) noexcept;

// pthread_key_create(), called by the code there.
int make_key(pthread_key_t* key, void (*destroy)(void*), const void* maker);

}  // namespace weft::hook
