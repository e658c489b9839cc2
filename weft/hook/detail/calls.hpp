// calls: what calls.def makes: an enumeration of the hooked calls, their originals, and the
// declarations of what replaces them.
//
//      hooked symbol --- in a fiber ---> in_fiber::read(...) ----\       calls_*.cpp
//      (symbols.cpp) \-- elsewhere --------------------------------+--> real::read(...) ---> libc,
//      hooked symbol, which is everywhere::close(...) ------------/       or the next definition
//
// Design: an original is a pointer that at first points to a function which looks for it, so that
// to call one needs no check, no initialisation and no memory, and is right before main and in an
// allocator that is being initialised.
//
// Model: none, each pointer goes once from its finder to the function found, the same for all.
#pragma once

#include <cxxabi.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/hook/detail/fiber_errno.hpp"

namespace weft::hook {

// The guard of a static's initialiser, as the C++ runtime's functions take it.
#ifdef _LIBCPP_VERSION
using init_guard = std::uint64_t;
#else
using init_guard = __cxxabiv1::__guard;
#endif

enum class call : unsigned {
#define WEFT_IN_FIBER(type, name, parameters, arguments) name,
#define WEFT_EVERYWHERE WEFT_IN_FIBER
#define WEFT_PASSES WEFT_IN_FIBER
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER
};

// What it does, as calls.def has it.
enum class call_kind : unsigned char { in_fiber, everywhere, passes };

struct call_info {
    const char* name;
    call_kind kind;
};

// The next definition of a function after weft's own. Ends the program if no next one exists.
namespace real {

void* next_of(const char* name) noexcept;

#define WEFT_IN_FIBER(type, name, parameters, arguments)                 \
    type find_##name parameters;                                         \
    using name##_type = type(*) parameters;                              \
    inline constinit atomic<name##_type> name##_pointer{find_##name};    \
    WEFT_ALWAYS_INLINE type name parameters {                            \
        /* Relaxed: every thread that looks it up finds the same. */     \
        return name##_pointer.load(std::memory_order_relaxed) arguments; \
    }
#define WEFT_EVERYWHERE WEFT_IN_FIBER
#define WEFT_PASSES WEFT_IN_FIBER
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER

}  // namespace real

// What is called in a fiber whose hooks are on.
namespace in_fiber {

#define WEFT_IN_FIBER(type, name, parameters, arguments) type name parameters;
#define WEFT_EVERYWHERE(type, name, parameters, arguments)
#define WEFT_PASSES WEFT_EVERYWHERE
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER

}  // namespace in_fiber

// Called on any thread and in any fiber: these are the hooked symbols themselves, so that they see
// their caller; but those with an ellipsis, for which symbols.cpp takes the last argument. None of
// the symbols is noexcept: a fiber that is killed while it waits in one unwinds through it.
#define WEFT_HOOKED_SYMBOL(type, name, parameters) \
    __attribute__((visibility("default"), used)) type name parameters __asm__(#name)

namespace everywhere {

#define WEFT_IN_FIBER(type, name, parameters, arguments)
#define WEFT_EVERYWHERE(type, name, parameters, arguments) \
    WEFT_HOOKED_SYMBOL(type, name, parameters);
#define WEFT_ELLIPSIS(type, name, fixed, before, last_type, arguments) \
    type name(WEFT_BARE fixed, last_type last);
#define WEFT_FORMAT(type, name, list_name, fixed, before, arguments) \
    type name(WEFT_BARE fixed, va_list rest);
#define WEFT_PASSES WEFT_IN_FIBER
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER

}  // namespace everywhere
}  // namespace weft::hook
