// A shared object that locks a mutex, as a client library does, and has made a key before the
// program that it is linked with starts.

#include <pthread.h>

static pthread_key_t early;
__attribute__((constructor)) static void make_early() { pthread_key_create(&early, nullptr); }
extern "C" pthread_key_t key_of_library() { return early; }

extern "C" int lock_in_library(pthread_mutex_t* m) {
    const int r = pthread_mutex_lock(m);
    asm volatile("");  // not a tail call, by which it would be the program that locks
    return r;
}
extern "C" int unlock_in_library(pthread_mutex_t* m) { return pthread_mutex_unlock(m); }
