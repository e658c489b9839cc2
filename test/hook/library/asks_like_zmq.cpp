// Waits as libzmq does: EINTR is returned to the caller, and any other error ends the program.

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

extern "C" int wait_like_zmq(int fd) {
    pollfd p = {fd, POLLIN, 0};
    const int n = poll(&p, 1, -1);
    if (n < 0 && errno != EINTR) abort();
    return n;
}
