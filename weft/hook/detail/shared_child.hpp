// shared_child: whether a child may be running in this process's memory, as that of vfork() does,
// or in a copy of it that is notified of nothing, as that of _Fork() does.
//
//      vfork, clone, _Fork ---> set, for good ---> libc's own, which returns to the caller
//      syscall(SYS_fork, SYS_vfork, SYS_clone, SYS_clone3) ---> set ---> the system
//
// Design: until such a child is first made, no call needs to query the system for its process,
// which is otherwise queried at each wait (is_own_process()) and costs more than all other checks
// there. vfork() returns twice on one frame, so no C++ function may surround it: the symbol sets a
// byte and jumps.
//
// Limits: a child that is made by a system call instruction outside libc is not seen. On processors
// without such a symbol here the byte is always set.
//
// Model: none, the byte stands for itself, and the thread that makes a child has set it before.
#pragma once

#include "weft/base/detail/atomic.hpp"

namespace weft::hook {

// There may be one from now on. Async-signal-safe.
void expect_shared_child() noexcept;
// In a child of fork() that continues as a program of its own: it has none.
void clear_shared_child() noexcept;

// Orders: relaxed, it stands for itself; a child has it from its parent.
extern atomic<bool> shared_child_is_expected;
inline bool may_be_shared_child() noexcept {
    return shared_child_is_expected.load(std::memory_order_relaxed);
}

}  // namespace weft::hook
