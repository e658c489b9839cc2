// own_self: pthread_self() and the attributes of a fiber (calls_self.cpp), apart from what a
// sanitizer queries about a thread that it does not know yet: that is in own_self.cpp, which is
// compiled without the sanitizer.
#pragma once

#include <pthread.h>

namespace weft::hook {

// The handle of a fiber is odd.
inline bool is_of_fiber(pthread_t handle) noexcept { return (handle & 1) != 0; }

// The caller's handle: that of its fiber, or of its thread.
pthread_t self_of_fiber() noexcept;
// As pthread_getattr_np(), for a fiber's handle.
int attributes_of_fiber(pthread_t of, pthread_attr_t* into) noexcept;

}  // namespace weft::hook
