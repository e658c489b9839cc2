// What is done to a descriptor: flags, options, shutdown, a duplicate, the end.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice on_off[] = {{"on", 1}, {"off", 0}};
constexpr choice how[] = {{"rd", SHUT_RD}, {"wr", SHUT_WR}, {"rdwr", SHUT_RDWR}};
constexpr choice directions[] = {{"rcv", SO_RCVTIMEO}, {"snd", SO_SNDTIMEO}};
constexpr choice timeouts[] = {{"1ms", 1000, true}, {"none", 0}};
constexpr choice lows[] = {{"1", 1}, {"5", 5}};
constexpr choice closers[] = {{"close", 0}, {"fclose", 1}, {"range", 2}};
constexpr choice times[] = {{"1ms", 1000 * 1000, true}, {"never", 0}};

void sets_nonblocking(making& m) {
    const int before = ::fcntl(m.fd(0), F_GETFL);
    const int flags = m.value(1) != 0 ? before | O_NONBLOCK : before & ~O_NONBLOCK;
    m.tell(::fcntl(m.fd(0), F_SETFL, flags));
}
void sets_nonblocking_by_ioctl(making& m) {
    int on = m.number(1);
    m.tell(::ioctl(m.fd(0), FIONBIO, &on));
}
void tells_flags(making& m) {
    const int flags = ::fcntl(m.fd(0), F_GETFL);
    m.tell(flags < 0 ? -1 : 0);
    if (flags >= 0) m.say((flags & O_NONBLOCK) != 0 ? "nonblock" : "waits");
}
void tells_what_is_there(making& m) {
    int count = -1;
    const int n = ::ioctl(m.fd(0), FIONREAD, &count);
    m.tell(n);
    if (n == 0) m.tell_moved(count, 0);
}
void sets_timeout(making& m) {
    const ::timeval t = {0, m.value(2)};
    m.tell(::setsockopt(m.fd(0), SOL_SOCKET, m.number(1), &t, sizeof t));
}
void sets_linger(making& m) {
    const ::linger l = {m.number(1), 0};
    m.tell(::setsockopt(m.fd(0), SOL_SOCKET, SO_LINGER, &l, sizeof l));
}
void sets_low_water(making& m) {
    const int n = m.number(1);
    m.tell(::setsockopt(m.fd(0), SOL_SOCKET, SO_RCVLOWAT, &n, sizeof n));
}
void sets_small_buffer(making& m) {
    const int n = 4096;
    m.tell(::setsockopt(m.fd(0), SOL_SOCKET, SO_SNDBUF, &n, sizeof n));
}
void tells_error(making& m) {
    int error = -1;
    ::socklen_t bytes = sizeof error;
    m.tell(::getsockopt(m.fd(0), SOL_SOCKET, SO_ERROR, &error, &bytes));
    m.say(error > 0 ? name_of_error(error) : std::to_string(error));
}
void closes(making& m) {
    const int fd = m.fd(0);
    int n = -1;
    if (m.value(1) == 1 && fd >= 0) {
        std::FILE* const f = ::fdopen(fd, "r");
        n = f != nullptr ? ::fclose(f) : ::close(fd);
    } else if (m.value(1) == 2 && fd >= 0) {
        n = ::close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0);
    } else {
        n = ::close(fd);
    }
    m.here.put(m.place(0), -1);
    m.tell(n);
}
void takes_the_place(making& m) {
    const int as = m.fd(0);
    const int n = ::dup2(m.fd(1), as);
    if (n >= 0) m.here.put_copy(m.place(0), n, m.place(1));
    m.tell(n >= 0 ? 0 : -1);
}
void sets_timer(making& m) {
    ::itimerspec t{};
    t.it_value.tv_nsec = m.value(1);
    m.tell(::timerfd_settime(m.fd(0), 0, &t, nullptr));
}

}  // namespace

void add_changers(std::vector<call_spec>& all) {
    all.push_back({"nonblock", 6, looks, {a_slot(anything), one_of(on_off)}, sets_nonblocking});
    all.push_back(
        {"fionbio", 2, looks, {a_slot(anything), one_of(on_off)}, sets_nonblocking_by_ioctl});
    all.push_back({"getfl", 1, looks, {a_slot(anything)}, tells_flags});
    all.push_back({"fionread", 2, looks, {a_slot(bytes)}, tells_what_is_there});
    all.push_back({"timeout",
                   6,
                   looks,
                   {a_slot(sockets | listener), one_of(directions), one_of(timeouts)},
                   sets_timeout});
    all.push_back({"linger", 3, looks, {a_slot(stream_socket), one_of(on_off)}, sets_linger});
    all.push_back({"lowat", 2, looks, {a_slot(sockets), one_of(lows)}, sets_low_water});
    all.push_back({"sndbuf", 2, looks, {a_slot(sockets)}, sets_small_buffer});
    all.push_back({"so_error", 2, looks, {a_slot(sockets)}, tells_error});
    all.push_back({"shutdown", 6, looks, {a_slot(sockets | listener), one_of(how)}, [](making& m) {
                       m.tell(::shutdown(m.fd(0), m.number(1)));
                   }});
    all.push_back({"close", 12, ends, {a_slot(anything), one_of(closers)}, closes});
    all.push_back({"dup2", 3, ends, {a_slot(anything), a_slot(anything)}, takes_the_place});
    all.push_back({"settime", 4, looks, {a_slot(timer), one_of(times)}, sets_timer});
}

}  // namespace weft::testing::fuzz
