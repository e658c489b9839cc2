// co_routine.h: for programs that were written for libco: the names that they use, over weft.
//
// Design: a coroutine of libco is a fiber of weft that begins and continues where the program calls
// co_resume; co_eventloop on the same thread ends its waits (poll, read, a condition). A program's
// source stays as it is. docs/from-libco.md has the differences, and what new code should use.
//
// Limits: a coroutine belongs to the thread that resumes it first. What is misuse (co_resume of one
// that has ended, runs, or waits for something other than a co_resume; of another thread's;
// co_yield_ct outside of any) ends the program with a message.
//
// This header is for any C++ from 2011 on.
#ifndef WEFT_POSIX_LIBCO_CO_ROUTINE_H
#define WEFT_POSIX_LIBCO_CO_ROUTINE_H

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/poll.h>
#include <sys/socket.h>

struct stCoRoutine_t;
struct stShareStack_t;
struct stCoEpoll_t;
struct stCoCond_t;

// -- coroutines ---------------------------------------------------------------------------------

// Laid out as libco's.
struct stCoRoutineAttr_t {
    int stack_size;               // 128 KiB, also for 0
    stShareStack_t* share_stack;  // instead of one of its own
    stCoRoutineAttr_t() : stack_size(128 * 1024), share_stack(0) {}
} __attribute__((packed));

typedef int (*pfn_co_eventloop_t)(void*);
typedef void* (*pfn_co_routine_t)(void*);

// 0; -1 if no memory can be had. attr may be null.
int co_create(stCoRoutine_t** co, const stCoRoutineAttr_t* attr, pfn_co_routine_t routine,
              void* arg);
// Runs it, here and now, until it yields, waits, or ends.
void co_resume(stCoRoutine_t* co);
// Back to the resumer of the caller; returns when the caller is resumed again. Whichever coroutine
// of the thread is named, the caller yields.
void co_yield_ct();
void co_yield_of(stCoRoutine_t* co);
#if !defined(__cpp_impl_coroutine)  // since C++20 this is no name any more
inline void co_yield(stCoRoutine_t* co) { co_yield_of(co); }
#endif
// Its end, wherever it is: the destructors of all that is on its stack run. Of the caller: when it
// returns.
void co_release(stCoRoutine_t* co);
// Begins anew at the next resume, from wherever it is.
void co_reset(stCoRoutine_t* co);

// The caller; in none, the thread's own, or null where libco was never used.
stCoRoutine_t* co_self();

// -- waiting ------------------------------------------------------------------------------------

// The loop of the calling thread.
stCoEpoll_t* co_get_epoll_ct();
// Runs what becomes ready, for ever; pfn is called after each round, and ends it by -1. While
// nothing happens it is called ever more seldom, down to once a second. Without it an idle loop
// sleeps.
void co_eventloop(stCoEpoll_t* ctx, pfn_co_eventloop_t pfn, void* arg);
// Ends its sleep. Any thread.
void co_eventloop_wake(stCoEpoll_t* ctx);
// poll(2), of a coroutine alone.
int co_poll(stCoEpoll_t* ctx, struct pollfd fds[], nfds_t nfds, int timeout_ms);
// accept(2), by the rules of the hooks.
int co_accept(int fd, struct sockaddr* addr, socklen_t* len);

stCoCond_t* co_cond_alloc();
int co_cond_free(stCoCond_t* cond);  // precondition: without waiters
// The coroutine that either wakes runs in co_eventloop. Any thread.
int co_cond_signal(stCoCond_t* cond);
int co_cond_broadcast(stCoCond_t* cond);
// 0: signalled. -1, and ETIMEDOUT in errno: not so within timeout_ms, if that is more than 0.
int co_cond_timedwait(stCoCond_t* cond, int timeout_ms);

// -- values of a coroutine ----------------------------------------------------------------------

// On a plain thread, the functions of pthreads. Any number of keys.
int co_setspecific(pthread_key_t key, const void* value);
void* co_getspecific(pthread_key_t key);

// From then on setenv, unsetenv and getenv of these names, in a coroutine with hooks, are about the
// coroutine's own. Called before any coroutine exists.
void co_set_env_list(const char* name[], size_t cnt);

// -- hooks: whether the calls of the system wait for the coroutine alone --------------------------

void co_enable_hook_sys();  // of the caller; in none, nothing
void co_disable_hook_sys();
bool co_is_enable_sys_hook();

// -- common stacks ------------------------------------------------------------------------------

stShareStack_t* co_alloc_sharestack(int count, int stack_size);
void co_free_sharestack(stShareStack_t* stacks);  // precondition: not in use

void co_log_err(const char* fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
