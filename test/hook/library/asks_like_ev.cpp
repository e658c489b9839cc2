// As libev waits: what is no EINTR ends the program, after that it waits again.

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

extern "C" int wait_like_ev(int fd) {
    for (;;) {
        pollfd p = {fd, POLLIN, 0};
        const int n = poll(&p, 1, -1);
        if (n > 0) return n;
        if (errno != EINTR) abort();
    }
}
