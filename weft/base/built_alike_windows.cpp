// What each file that includes weft refers to, see platform.hpp; and so what is linked whatever a
// program uses of weft.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

const char WEFT_SANITIZED_LIKE = 0;
const char WEFT_SWITCHED_LIKE = 0;

extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) noexcept;

namespace {

// GCC's variables of a thread are memory that a key of pthreads destroys at the end of the thread,
// and what has the destructors of such variables run is another key. Keys end in the order in which
// they began. So the destructors' begins here, before a variable is used: a destructor then finds
// the variables of its thread as they were.
__attribute__((constructor(101))) void begin_with_destructors() noexcept {
    __cxa_thread_atexit([](void*) {}, nullptr, nullptr);
}

}  // namespace

#endif
