// What waits for several at once, and for time.

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice wanted[] = {{"in", POLLIN},   {"out", POLLOUT},     {"both", POLLIN | POLLOUT},
                             {"pri", POLLPRI}, {"rdhup", POLLRDHUP}, {"none", 0}};
constexpr choice sets[] = {{"read", 1}, {"write", 2}, {"urgent", 4}, {"all", 7}, {"none", 0}};
constexpr choice masks[] = {{"null", 0}, {"empty", 1}};
constexpr choice ops[] = {{"add", EPOLL_CTL_ADD}, {"mod", EPOLL_CTL_MOD}, {"del", EPOLL_CTL_DEL}};
constexpr choice epoll_wanted[] = {
    {"in", EPOLLIN},
    {"out", EPOLLOUT},
    {"in+et", static_cast<long>(EPOLLIN | EPOLLET)},
    {"both+oneshot", static_cast<long>(EPOLLIN | EPOLLOUT | EPOLLONESHOT)},
    {"out+et", static_cast<long>(EPOLLOUT | EPOLLET)},
    {"rdhup", EPOLLRDHUP}};
constexpr choice most[] = {{"1", 1}, {"3", 3}, {"0", 0}};
constexpr choice spans[] = {{"1ms", 1000 * 1000, true}, {"0", 0}, {"bad", -1}};

void look_at(making& m, unsigned first, unsigned count, unsigned events, unsigned timeout,
             const unsigned* mask) {
    ::pollfd all[3];
    for (unsigned i = 0; i != count; ++i)
        all[i] = {m.fd(first + i), static_cast<short>(m.value(events)), 0};
    const long ms = m.value(timeout);
    int n;
    if (mask == nullptr) {
        n = ::poll(all, count, static_cast<int>(ms));
    } else {
        const ::timespec limit = {0, ms * 1000 * 1000};
        ::sigset_t none;
        sigemptyset(&none);
        n = ::ppoll(all, count, ms < 0 ? nullptr : &limit, m.value(*mask) != 0 ? &none : nullptr);
    }
    m.tell(n);
    for (unsigned i = 0; n >= 0 && i != count; ++i) m.say(std::to_string(all[i].revents));
}

void polls(making& m) { look_at(m, 0, 1, 1, 2, nullptr); }
void polls_two(making& m) { look_at(m, 0, 2, 2, 3, nullptr); }
void ppolls(making& m) {
    constexpr unsigned mask = 3;
    look_at(m, 0, 1, 1, 2, &mask);
}

// A signal that is pending for the thread, and that the mask lets in.
void raises_and_polls(making& m) {
    ::sigset_t one, before, none;
    sigemptyset(&none);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &one, &before);
    const unsigned signals = world::user_signals;
    ::raise(SIGUSR1);
    ::pollfd p = {m.fd(0), static_cast<short>(m.value(1)), 0};
    const ::timespec limit = {0, m.value(2) * 1000 * 1000};
    m.tell(::ppoll(&p, 1, m.value(2) < 0 ? nullptr : &limit, &none));
    m.say("signals " + std::to_string(world::user_signals - signals));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void select_in(making& m, bool masked) {
    const int fd = m.fd(0);
    const auto which = static_cast<unsigned>(m.value(1));
    ::fd_set all[3];
    for (unsigned i = 0; i != 3; ++i) {
        FD_ZERO(&all[i]);
        if ((which & (1u << i)) != 0 && fd >= 0) FD_SET(fd, &all[i]);
    }
    const long ms = m.value(2);
    int n;
    if (masked) {
        const ::timespec limit = {0, ms * 1000 * 1000};
        ::sigset_t none;
        sigemptyset(&none);
        n = ::pselect(fd + 1, &all[0], &all[1], &all[2], ms < 0 ? nullptr : &limit,
                      m.value(3) != 0 ? &none : nullptr);
    } else {
        ::timeval limit = {0, ms * 1000};
        n = ::select(fd + 1, &all[0], &all[1], &all[2], ms < 0 ? nullptr : &limit);
        if (ms >= 0 && n == 0) m.say("left " + std::to_string(limit.tv_usec));
    }
    m.tell(n);
    for (unsigned i = 0; n >= 0 && fd >= 0 && i != 3; ++i) m.say(FD_ISSET(fd, &all[i]) ? "1" : "0");
}

void selects(making& m) { select_in(m, false); }
void pselects(making& m) { select_in(m, true); }

void controls(making& m) {
    ::epoll_event e{};
    e.events = static_cast<std::uint32_t>(m.value(3));
    e.data.u32 = m.place(1);
    m.tell(::epoll_ctl(m.fd(0), m.number(2), m.fd(1), &e));
}

void epoll_in(making& m, bool masked) {
    ::epoll_event got[3] = {};
    ::sigset_t none;
    sigemptyset(&none);
    const int n = masked ? ::epoll_pwait(m.fd(0), got, m.number(1), m.number(2),
                                         m.value(3) != 0 ? &none : nullptr)
                         : ::epoll_wait(m.fd(0), got, m.number(1), m.number(2));
    m.tell(n);
    for (int i = 0; i < n && i < 3; ++i)
        m.say("s" + std::to_string(got[i].data.u32) + ":" + std::to_string(got[i].events));
}

void epoll_waits(making& m) { epoll_in(m, false); }
void epoll_pwaits(making& m) { epoll_in(m, true); }

void sleeps(making& m) {
    const ::timespec wanted_time = {0, m.value(0)};
    m.tell(::nanosleep(&wanted_time, nullptr));
}
void sleeps_by_clock(making& m) {
    ::timespec until{};
    if (m.value(0) >= 0) ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += m.value(0);
    if (until.tv_nsec >= 1000 * 1000 * 1000) {
        until.tv_nsec -= 1000 * 1000 * 1000;
        ++until.tv_sec;
    }
    m.tell(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr));
}

}  // namespace

void add_lookers(std::vector<call_spec>& all) {
    all.push_back({"poll", 8, looks, {a_slot(anything), one_of(wanted), one_of(waits)}, polls});
    all.push_back({"poll_two",
                   4,
                   looks,
                   {a_slot(anything), a_slot(anything), one_of(wanted), one_of(waits)},
                   polls_two});
    all.push_back({"ppoll",
                   3,
                   of_signals,
                   {a_slot(anything), one_of(wanted), one_of(waits), one_of(masks)},
                   ppolls});
    all.push_back({"raise_ppoll",
                   1,
                   of_signals,
                   {a_slot(anything), one_of(wanted), one_of(waits)},
                   raises_and_polls});
    all.push_back({"select", 4, looks, {a_slot(anything), one_of(sets), one_of(waits)}, selects});
    all.push_back({"pselect",
                   2,
                   of_signals,
                   {a_slot(anything), one_of(sets), one_of(waits), one_of(masks)},
                   pselects});
    all.push_back({"epoll_ctl",
                   12,
                   looks,
                   {a_slot(epoll_set), a_slot(anything), one_of(ops), one_of(epoll_wanted)},
                   controls});
    all.push_back(
        {"epoll_wait", 6, takes, {a_slot(epoll_set), one_of(most), one_of(waits)}, epoll_waits});
    all.push_back({"epoll_pwait",
                   3,
                   takes | of_signals,
                   {a_slot(epoll_set), one_of(most), one_of(waits), one_of(masks)},
                   epoll_pwaits});
    all.push_back({"nanosleep", 1, looks, {one_of(spans)}, sleeps});
    all.push_back({"clock_nanosleep", 1, looks, {one_of(spans)}, sleeps_by_clock});
}

}  // namespace weft::testing::fuzz
