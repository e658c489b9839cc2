// owner_death: what the kernel does for a robust mutex when the thread that owns it ends, done for
// a fiber that ends while its thread continues: the next agent that locks it receives EOWNERDEAD.
//
// Design: libc recognises it by one bit of the mutex's word, and finds the mutex in a list of the
// thread's own. So the mutex is taken out of the list and the bit is set, in the order of an
// unlock:
//
//      word: thread | waiters         list: ... <-> this mutex <-> ...
//      word: died   | waiters         list: ... <-> ...                   one sleeper is woken
//
// All else is libc's from then on: pthread_mutex_consistent() repairs it, and an unlock without
// that makes it ENOTRECOVERABLE.
//
// Limits: only on the thread that has locked it. A mutex with priority inheritance for which a
// thread waits can be passed on only by the kernel, and stays locked until its thread ends.
//
// Model: none, the word is libc's, and the list the thread's own.
#pragma once

#include <pthread.h>

namespace weft::hook {

bool is_robust(const pthread_mutex_t& m) noexcept;

// For a robust mutex that this thread owns. False: the thread does not own it, or it stays locked.
bool let_owner_die(pthread_mutex_t& m) noexcept;

// Libc's trylock reports ENOTRECOVERABLE and keeps the word, which its lock does not.
void unlock_lost(pthread_mutex_t& m) noexcept;

}  // namespace weft::hook
