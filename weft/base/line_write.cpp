#include <unistd.h>

#include <cerrno>

#include "weft/base/detail/line.hpp"
#include "weft/base/errno.hpp"

namespace weft::detail {

void line::write(int fd) const noexcept {
    const kept_errno before;
    std::size_t done = 0;
    int most_interrupts = 1000;  // more are no signals: it goes without the line
    while (done < size_) {
        const ssize_t n = ::write(fd, buffer_ + done, size_ - done);
        if (n < 0 && get_errno() == EINTR && --most_interrupts != 0) continue;
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
}

}  // namespace weft::detail
