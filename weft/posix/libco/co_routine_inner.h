// co_routine_inner.h: what libco calls internal but its users use. The types are weft's own, and
// closed.
#ifndef WEFT_POSIX_LIBCO_CO_ROUTINE_INNER_H
#define WEFT_POSIX_LIBCO_CO_ROUTINE_INNER_H

#include "co_routine.h"
#include "coctx.h"

struct stCoRoutineEnv_t;

// What a thread has for its coroutines, made by the first; null before.
void co_init_curr_thread_env();
stCoRoutineEnv_t* co_get_curr_thread_env();

void co_free(stCoRoutine_t* co);  // co_release
void co_yield_env(stCoRoutineEnv_t* env);
stCoRoutine_t* GetCurrThreadCo();  // co_self

typedef void (*pfnCoRoutineFunc_t)();

#endif
