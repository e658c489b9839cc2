// fiber_errno: in weft/hook, errno is the fiber's over every wait, on whatever thread it resumes.
//
// Design: `errno` means weft::errno_here() here, which is called each time and whose result no
// compiler keeps (weft/base/errno.hpp), so that no line of this layer can hold the address of
// another thread's errno, however it is written. The waits (readiness.hpp, several.hpp,
// offloaded_call.hpp) leave errno as it was, whatever other fibers have done meanwhile; a call that
// succeeds after that restores the value from before the first attempt.
#pragma once

#include <cerrno>

#include "weft/base/errno.hpp"

#undef errno
#define errno (*::weft::errno_here())
