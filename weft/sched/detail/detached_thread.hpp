// detached_thread: a thread of the library that is never joined.
//
// It receives no signals: those go to the threads of the program, which has set the handlers.
//
// Model: none, one count.
//
//   if (!detail::begin_detached_thread(work, this)) ...      // there is no thread, or no memory
#pragma once

namespace weft::detail {

// Runs f(of) on a new thread. False: no thread could be started, and nothing has run.
[[nodiscard]] bool begin_detached_thread(void (*f)(void*) noexcept, void* of) noexcept;

// How many are in their functions: never more than exist, and slightly fewer while one starts.
[[nodiscard]] unsigned detached_thread_count() noexcept;

}  // namespace weft::detail
