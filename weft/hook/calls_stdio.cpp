// The calls on streams of stdio: each is libc's own, on a stream that belongs to the running fiber
// for the length of the call.

#include <cerrno>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/stdio_lock.hpp"
#include "weft/hook/detail/stdio_waits.hpp"

namespace weft::hook::everywhere {

#define WEFT_IN_FIBER(type, name, parameters, arguments)
#define WEFT_EVERYWHERE WEFT_IN_FIBER
#define WEFT_PASSES WEFT_IN_FIBER
#define WEFT_STREAM(type, name, parameters, stream, arguments) \
    type name parameters {                                     \
        const stdio_lock held(stream);                         \
        return real::name arguments;                           \
    }
#define WEFT_FORMAT(type, name, list_name, fixed, before, arguments) \
    type name(WEFT_BARE fixed, va_list rest) { return everywhere::list_name arguments; }
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER

void flockfile(FILE* file) {
    enter_stream(file);
    real::flockfile(file);
}

int ftrylockfile(FILE* file) {
    if (!try_enter_stream(file)) return EBUSY;
    const int r = real::ftrylockfile(file);
    if (r != 0) leave_stream(file);
    return r;
}

void funlockfile(FILE* file) {
    real::funlockfile(file);
    leave_stream(file);
}

// libc makes a stream of its own for it, of the same kind as the program's.
int vdprintf(int fd, const char* format, va_list rest) {
    if (hooked_fiber() != nullptr) let_stream_wait(stderr);
    return real::vdprintf(fd, format, rest);
}
int __vdprintf_chk(int fd, int flag, const char* format, va_list rest) {
    if (hooked_fiber() != nullptr) let_stream_wait(stderr);
    return real::__vdprintf_chk(fd, flag, format, rest);
}

// A call on all streams is no wait of one fiber: libc visits one after the other under its own
// locks.
int fflush(FILE* file) {
    if (file != nullptr) {
        const stdio_lock held(file);
        return real::fflush(file);
    }
    wait_for_all_streams();
    const streams_block_scope thread_waits;
    return real::fflush(nullptr);
}

}  // namespace weft::hook::everywhere
