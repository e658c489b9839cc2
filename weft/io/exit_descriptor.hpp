// exit_descriptor: a descriptor that can be read when a child of this process has ended: how the
// end of a child is waited for like anything else.
//
// It is that of pidfd_open, since Linux 5.3. Where the system has none, or a sandbox refuses it, a
// thread of the library waits for the child and closes the other end of a pipe; the thread is as
// long there as the child. Neither reaps it.
#pragma once

#include <sys/types.h>

#include "weft/base/result.hpp"

namespace weft::detail {

// The caller owns the number; it is closed on exec. The child must not have been reaped.
result<int> exit_descriptor(::pid_t child) noexcept;

// The same on every system. The child must not be reaped before the descriptor says that it has
// ended.
result<int> exit_descriptor_by_thread(::pid_t child) noexcept;

}  // namespace weft::detail
