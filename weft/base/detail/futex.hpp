// futex: a thread sleeps while a word has a given value, and a thread that has changed the word
// wakes it.
//
// Design: the two system calls themselves, below everything that may replace functions of libc, so
// that what is built on them blocks the thread and nothing else, wherever it is called.
//
//      sleeper                                      waker
//      word is `expected`? --- in one step ---      word = another; futex_wake(&word)
//      futex_wait(word, expected): sleeps ----------------^ comes back
//
// A sleep may end for no reason; the sleeper checks the word again. Neither call changes errno. A
// wake needs the address alone: the word may be gone by then.
//
//   weft::atomic<std::uint32_t> word{0};
//   while (word.load(std::memory_order_acquire) == 0) weft::detail::futex_wait(word, 0);
//   word.store(1, std::memory_order_release), weft::detail::futex_wake(&word);     // elsewhere
//
// Model: none, test/model has its own in the place of futex.cpp, for what is built on it.
#pragma once

#include <cstdint>

#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"

namespace weft::detail {

// False when `until`, of steady_now(), has come.
bool futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected,
                time_point until = never) noexcept;

// The same of a word that is not weft's.
bool futex_wait_at(void* word, std::uint32_t expected, time_point until = never) noexcept;

// How many were woken; 0 where the system does not say.
int futex_wake(const void* word, int most = 1) noexcept;

}  // namespace weft::detail
