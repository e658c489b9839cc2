// weft_net_waits.so, for LD_PRELOAD: counts a server's waits on epoll and the events that the waits
// return, in the file that WEFT_NET_WAITS names. Servers that do not call epoll through the C
// library, such as Go and io_uring, are not counted.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "bench/net/waits.hpp"

namespace {

using bench::net::wait_counts;

wait_counts* mapped() {
    const char* const path = std::getenv("WEFT_NET_WAITS");
    const int fd = path != nullptr ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return nullptr;
    void* const at = mmap(nullptr, sizeof(wait_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at != MAP_FAILED ? static_cast<wait_counts*>(at) : nullptr;
}

int counted(int events) {
    static wait_counts* const counts = mapped();
    if (counts != nullptr && events > 0) {
        counts->waits.fetch_add(1, std::memory_order_relaxed);
        counts->events.fetch_add(static_cast<std::uint64_t>(events), std::memory_order_relaxed);
    }
    return events;
}

template <class Function>
Function* next(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
    static auto* const real = next(&epoll_wait, "epoll_wait");
    return counted(real(fd, events, most, timeout));
}

int epoll_pwait(int fd, epoll_event* events, int most, int timeout, const sigset_t* mask) {
    static auto* const real = next(&epoll_pwait, "epoll_pwait");
    return counted(real(fd, events, most, timeout, mask));
}

int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* timeout,
                 const sigset_t* mask) {
    static auto* const real = next(&epoll_pwait2, "epoll_pwait2");
    return counted(real(fd, events, most, timeout, mask));
}
}
