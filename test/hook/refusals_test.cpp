// Cases of what the system refuses at once, whether or not there is something to wait for: a call
// in a fiber must not wait before it was refused.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;

POSIX_CASE(what_cannot_be_written_refuses_at_once) {
    const one_fd timer(HOOKED(timerfd_create)(CLOCK_MONOTONIC, 0));
    const one_fd set(HOOKED(epoll_create1)(0));
    char bytes[16] = {1};
    const iovec two[] = {{bytes, 8}, {bytes + 8, 8}};
    for (const int fd : {timer.n, set.n})
        for (int i = 0; i != 2; ++i) {
            t.told("write", HOOKED(write)(fd, bytes, 8));
            t.told("writev", HOOKED(writev)(fd, two, 2));
            t.told("pwritev2", HOOKED(pwritev2)(fd, two, 2, -1, 0));
        }
    t.told("a set that is read", HOOKED(read)(set.n, bytes, 8));
    t.told("a timer in too little room", HOOKED(read)(timer.n, bytes, 7));
}

POSIX_CASE(a_counter_takes_a_number_of_each_buffer) {
    const one_fd e(HOOKED(eventfd)(0, 0));
    std::uint64_t a = 3;
    std::uint64_t b = UINT64_MAX - 1;
    const iovec both[] = {{&a, sizeof a}, {&b, sizeof b}};
    std::uint64_t got = 0;
    std::uint64_t first = 0;
    t.beside([&] {
        after_ms(5);
        HOOKED(read)(e.n, &first, sizeof first);
    });
    t.told("one, and then another that waits", HOOKED(writev)(e.n, both, 2));
    t.join();
    t.told("the first alone", static_cast<long>(first));
    t.told("the second", HOOKED(read)(e.n, &got, sizeof got));
    t.told("it was", got == b);
    char short_of_eight[4] = {};
    const iovec bad[] = {{&a, sizeof a}, {short_of_eight, 4}};
    t.told("one, and then too few", HOOKED(writev)(e.n, bad, 2));
    const iovec none_first[] = {{&a, 0}, {&a, sizeof a}};
    t.told("none, and then one", HOOKED(writev)(e.n, none_first, 2));
    char long_one[20] = {1};
    const iovec much[] = {{long_one, 20}, {&a, sizeof a}};
    t.told("more than a number", HOOKED(writev)(e.n, much, 2));
    t.told("read into too little", HOOKED(read)(e.n, &got, 7));
    t.told("read", HOOKED(read)(e.n, &got, sizeof got));
    t.told("into too little when empty", HOOKED(read)(e.n, &got, 7));
    const iovec all_ones[] = {{&(b = UINT64_MAX), sizeof b}, {&a, sizeof a}};
    t.told("all ones", HOOKED(writev)(e.n, all_ones, 2));
}

// A socket of messages sends one of no bytes, for which there must be room.
POSIX_CASE(a_message_of_no_bytes_is_waited_for) {
    const auto s = fd_pair::sockets(SOCK_SEQPACKET);
    char much[8192] = {};
    long sent = 0;
    while (HOOKED(send)(s.a, much, sizeof much, MSG_DONTWAIT) > 0) ++sent;
    ssize_t last = -1;
    t.beside([&] {
        after_ms(5);
        char room[8192];
        for (long i = 0; i != sent; ++i) HOOKED(recv)(s.b, room, sizeof room, 0);
        last = HOOKED(recv)(s.b, room, sizeof room, 0);
    });
    const iovec none = {much, 0};
    t.told("writev of none sends none", HOOKED(writev)(s.a, &none, 1));
    t.told("write", HOOKED(write)(s.a, much, 0));
    t.join();
    t.told("and none", last);
}

}  // namespace
