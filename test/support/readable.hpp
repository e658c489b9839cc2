// readable: whether poll() would return at once.
#pragma once

#include <poll.h>

namespace weft::testing {

inline bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

}  // namespace weft::testing
