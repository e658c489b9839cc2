// A library that was built without unwind tables, and waits again whatever the error is.

#include <poll.h>

extern "C" int wait_without_tables(int fd, volatile int* asked) {
    pollfd p = {fd, POLLIN, 0};
    while (poll(&p, 1, -1) <= 0 && *asked >= 0) *asked = *asked + 1;
    return *asked;
}
