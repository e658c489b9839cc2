/* What a C library does that cleans up after a cancellation: as it is compiled, with exceptions or
   without, its handlers are found by the unwinder, or stand in a list of libc's. */

#include <pthread.h>
#include <stddef.h>

/* Each handler calls `note` with its own number. */
int WEFT_NAME(int (*wait)(void*), void* of, void (*note)(void*)) {
    static int inner = 1;
    static int outer = 2;
    int r = 0;
    pthread_cleanup_push(note, &outer);
    pthread_cleanup_push(note, &inner);
    r = wait(of);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(1);
    return r;
}
