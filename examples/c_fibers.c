/* Fibers in C: producers put orders into a store with room for a few, packers take them out, and a
 * clock fiber is cancelled when they are done. Written as with pthreads.
 *
 *     c_fibers
 */
#include <stdio.h>

#include "weft/posix/weft.h"

enum { producers = 3, packers = 2, each = 100, room = 4 };

static weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
static weft_cond_t has_order = WEFT_COND_INITIALIZER;
static weft_cond_t has_room = WEFT_COND_INITIALIZER;
static int store[room];
static int stored, left = producers * each;
static long packed_sum;

static void unlock(void *mutex) { weft_mutex_unlock(mutex); }

static void *produce(void *first) {
    for (int i = 0; i != each; ++i) {
        weft_mutex_lock(&lock);
        while (stored == room) weft_cond_wait(&has_room, &lock);
        store[stored++] = *(const int *)first + i;
        weft_cond_signal(&has_order);
        weft_mutex_unlock(&lock);
    }
    return NULL;
}

static void *pack(void *unused) {
    long count = 0;
    (void)unused;
    weft_mutex_lock(&lock);
    weft_cleanup_push(unlock, &lock);
    while (left != 0) {
        while (stored == 0 && left != 0) weft_cond_wait(&has_order, &lock);
        if (left == 0) break;
        packed_sum += store[--stored];
        ++count;
        if (--left == 0) weft_cond_broadcast(&has_order);
        weft_cond_signal(&has_room);
    }
    weft_cleanup_pop(1);
    return (void *)count;
}

static void *tick(void *ticks) {
    while (weft_usleep(1000) == 0) ++*(int *)ticks;
    return NULL;
}

static void *shop(void *unused) {
    weft_t clock, all[producers + packers];
    int first[producers], ticks = 0;
    long count = 0;
    void *value;
    (void)unused;
    if (weft_create(&clock, NULL, tick, &ticks) != 0) return NULL;
    for (int i = 0; i != producers; ++i) {
        first[i] = i * each;
        if (weft_create(&all[i], NULL, produce, &first[i]) != 0) return NULL;
    }
    for (int i = 0; i != packers; ++i)
        if (weft_create(&all[producers + i], NULL, pack, NULL) != 0) return NULL;
    for (int i = 0; i != producers + packers; ++i) {
        weft_join(all[i], &value);
        count += (long)value;
    }
    weft_cancel(clock);
    weft_join(clock, &value);
    printf("%ld orders packed, their sum %ld; the clock %s\n", count, packed_sum,
           value == WEFT_CANCELED ? "was cancelled" : "ended by itself");
    return count == producers * each ? &packed_sum : NULL;
}

int main(void) {
    void *well = NULL;
    const long n = producers * each;
    if (weft_run(shop, NULL, &well) != 0) return 2;
    return well != NULL && packed_sum == n * (n - 1) / 2 ? 0 : 1;
}
