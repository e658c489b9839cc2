// A library that replaces libc's accept4 in the program it is linked with: on request, it reports a
// peer that was gone before it was accepted, as POSIX specifies and Linux does not do.

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

static std::atomic<bool> tells_aborts{false};
static std::atomic<int> told_aborts{0};

// How many were reported so far.
extern "C" int let_accepts_tell_aborts(bool on) {
    tells_aborts = on;
    return told_aborts;
}

static bool was_reset(int number) {
    ::tcp_info i{};
    ::socklen_t bytes = sizeof i;
    return ::getsockopt(number, IPPROTO_TCP, TCP_INFO, &i, &bytes) == 0 &&
           i.tcpi_state == TCP_CLOSE;
}

static int accept_and_look(int number, ::sockaddr* peer, ::socklen_t* bytes, int flags) {
    const auto n = static_cast<int>(::syscall(SYS_accept4, number, peer, bytes, flags));
    if (n < 0 || !tells_aborts || !was_reset(n)) return n;
    ::syscall(SYS_close, n);
    ++told_aborts;
    errno = ECONNABORTED;
    return -1;
}
extern "C" int accept4(int number, ::sockaddr* peer, ::socklen_t* bytes, int flags) {
    return accept_and_look(number, peer, bytes, flags);
}
extern "C" int accept(int number, ::sockaddr* peer, ::socklen_t* bytes) {
    return accept_and_look(number, peer, bytes, 0);
}
