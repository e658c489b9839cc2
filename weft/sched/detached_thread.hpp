// detached_thread: a thread of the library that is never joined.
//
// It takes no signals: those are for the threads of the program, which has set the handlers.
//
// Model: none, one count.
//
//   if (!detail::begin_detached_thread(work, this)) ...      // there is no thread, or no memory
#pragma once

namespace weft::detail {

// Runs f(of) there. False: it cannot be begun, and nothing has run.
[[nodiscard]] bool begin_detached_thread(void (*f)(void*) noexcept, void* of) noexcept;

// How many are in their functions: never more than there are, and a little less while one begins.
[[nodiscard]] unsigned detached_thread_count() noexcept;

}  // namespace weft::detail
