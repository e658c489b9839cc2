#include "weft/base/errno.hpp"

#include <cerrno>

namespace weft {

// The empty asm keeps a compiler that sees these from taking two calls for one.
int* errno_here() noexcept {
    asm volatile("" ::: "memory");
    return &errno;
}

int get_errno() noexcept {
    asm volatile("" ::: "memory");
    return errno;
}

void set_errno(int value) noexcept {
    asm volatile("" ::: "memory");
    errno = value;
}

}  // namespace weft
