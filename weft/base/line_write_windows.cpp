#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <io.h>

#include "weft/base/detail/line.hpp"
#include "weft/base/errno.hpp"

namespace weft::detail {

// The C library writes all of it, or fails; no signal interrupts it.
void line::write(int fd) const noexcept {
    const kept_errno before;
    static_cast<void>(::_write(fd, buffer_, static_cast<unsigned>(size_)));
}

}  // namespace weft::detail

#endif
