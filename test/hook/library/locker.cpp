// A shared object that locks a mutex, as a client library does.

#include <pthread.h>

extern "C" int lock_in_library(pthread_mutex_t* m) {
    const int r = pthread_mutex_lock(m);
    asm volatile("");  // not a tail call, by which it would be the program that locks
    return r;
}
extern "C" int unlock_in_library(pthread_mutex_t* m) { return pthread_mutex_unlock(m); }
