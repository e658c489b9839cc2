// Waits as libevent does: after EINTR it waits again, and any other error is returned to the
// caller.

#include <errno.h>
#include <poll.h>

extern "C" int wait_like_event(int fd) {
    for (;;) {
        pollfd p = {fd, POLLIN, 0};
        const int n = poll(&p, 1, -1);
        if (n > 0 || errno != EINTR) return n;
    }
}
