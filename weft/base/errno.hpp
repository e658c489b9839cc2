// kept_errno, set_errno: errno, for a function in which a wait may come between two uses of it.
//
// Design: errno is reached through functions that are never inlined and of which a compiler knows
// nothing.
//
// The address of errno is its thread's. Compilers take it to be the same throughout a function, as
// it is in a function that stays on its thread, and keep it over calls: code that waits as a
// migratable fiber resumes on another thread and would read and write the first thread's errno.
//
// Limits: where nothing can wait between the uses, errno itself is as good.
// tools/thread_local_check.py finds in the object code where it is not. The pointer that
// errno_here() returns is valid until the next wait.
//
//   const weft::kept_errno before;      // put back at the end of the scope, on whatever thread
//   ...                                 // a wait
#pragma once

#include "weft/base/platform.hpp"

namespace weft {

WEFT_NOINLINE int get_errno() noexcept;
WEFT_NOINLINE void set_errno(int value) noexcept;
// Valid until the next wait: use the pointer at once, store it nowhere.
WEFT_NOINLINE int* errno_here() noexcept;

// A failed call: errno is set; -1.
inline int fail_with(int why) noexcept {
    set_errno(why);
    return -1;
}

class kept_errno {
public:
    kept_errno() noexcept : value_(get_errno()) {}
    kept_errno(const kept_errno&) = delete;
    kept_errno& operator=(const kept_errno&) = delete;
    // Puts errno back.
    ~kept_errno() { set_errno(value_); }

private:
    const int value_;
};

}  // namespace weft
