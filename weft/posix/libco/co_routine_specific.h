// co_routine_specific.h: a variable of which each coroutine has its own.
//
//   CO_ROUTINE_SPECIFIC(session_t, session);        // at namespace scope
//   session->id = 7;                                // the caller's
//
// It is made at the first use, as by T(), and destroyed when the coroutine ends; on a plain thread
// it is the thread's.
#ifndef WEFT_POSIX_LIBCO_CO_ROUTINE_SPECIFIC_H
#define WEFT_POSIX_LIBCO_CO_ROUTINE_SPECIFIC_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

int co_setspecific(pthread_key_t key, const void* value);
void* co_getspecific(pthread_key_t key);

// The caller's object for a key, which is made at its first use. Null: no memory.
void* co_specific_object(uint64_t* key, void* (*make)(), void (*destroy)(void*));

template <class T>
class co_specific {
public:
    T* operator->() { return get(); }
    T& operator*() { return *get(); }

    uint64_t key_;  // given at the first use

private:
    T* get() { return static_cast<T*>(co_specific_object(&key_, make, destroy)); }
    static void* make() { return new T(); }
    static void destroy(void* p) { delete static_cast<T*>(p); }
};

#define CO_ROUTINE_SPECIFIC(type, name) static co_specific<type> name = {0}

#endif
