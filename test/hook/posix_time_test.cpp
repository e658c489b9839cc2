// Cases of time, names, processes and threads.

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;
using std::chrono::milliseconds;

POSIX_CASE(sleep_lasts) {
    t.took("usleep", milliseconds(10), [&] { t.told("usleep", HOOKED(usleep)(10'000)); });
    t.told("sleep of nothing", HOOKED(sleep)(0));
    const timespec some = {0, 10'000'000};
    timespec left = {7, 7};
    t.took("nanosleep", milliseconds(10),
           [&] { t.told("nanosleep", HOOKED(nanosleep)(&some, &left)); });
    t.told("left", left.tv_sec);
    const timespec bad = {0, 1'000'000'000};
    const timespec worse = {-1, 0};
    t.told("bad", HOOKED(nanosleep)(&bad, nullptr));
    t.told("worse", HOOKED(nanosleep)(&worse, nullptr));
    t.told("none", HOOKED(nanosleep)(nullptr, nullptr));
    for (const clockid_t by : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME}) {
        t.took("clock_nanosleep", milliseconds(10),
               [&] { t.told("clock_nanosleep", HOOKED(clock_nanosleep)(by, 0, &some, nullptr)); });
        timespec at;
        ::clock_gettime(by, &at);
        t.told("in the past", HOOKED(clock_nanosleep)(by, TIMER_ABSTIME, &at, nullptr));
        at.tv_nsec += 10'000'000;
        if (at.tv_nsec > 999'999'999) at = {at.tv_sec + 1, at.tv_nsec - 1'000'000'000};
        t.told("until", HOOKED(clock_nanosleep)(by, TIMER_ABSTIME, &at, nullptr));
        timespec then;
        ::clock_gettime(by, &then);
        t.told("it has come",
               then.tv_sec > at.tv_sec || (then.tv_sec == at.tv_sec && then.tv_nsec >= at.tv_nsec));
        t.told("bad", HOOKED(clock_nanosleep)(by, 0, &bad, nullptr));
    }
    if (may_give_bad_lists) {
        const timespec* const nowhere = reinterpret_cast<const timespec*>(8);
        t.told("nowhere", HOOKED(nanosleep)(nowhere, nullptr));
        t.told("nowhere", HOOKED(clock_nanosleep)(CLOCK_MONOTONIC, 0, nowhere, nullptr));
        t.told("nowhere", HOOKED(clock_nanosleep)(CLOCK_REALTIME, TIMER_ABSTIME, nowhere, nullptr));
        sigset_t none;
        ::sigemptyset(&none);
        t.told("nowhere", HOOKED(sigtimedwait)(&none, nullptr, nowhere));
    }
    t.told("no such clock", HOOKED(clock_nanosleep)(4242, 0, &some, nullptr));
    t.took("sleep", milliseconds(1000), [&] { t.told("sleep", HOOKED(sleep)(1)); });
}

POSIX_CASE(sleep_by_other_clocks) {
    const timespec some = {0, 2'000'000};
    for (const clockid_t by :
         {CLOCK_TAI, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_THREAD_CPUTIME_ID}) {
        timespec at{};
        t.told("from now", HOOKED(clock_nanosleep)(by, 0, &some, nullptr));
        t.told("long ago", HOOKED(clock_nanosleep)(by, TIMER_ABSTIME, &at, nullptr));
    }
    const timespec past{};
    t.told("of the processor",
           HOOKED(clock_nanosleep)(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &past, nullptr));
    t.told("other flags", HOOKED(clock_nanosleep)(CLOCK_MONOTONIC, 1 << 7, &some, nullptr));
    timespec at;
    ::clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 150'000'000;
    if (at.tv_nsec > 999'999'999) at = {at.tv_sec + 1, at.tv_nsec - 1'000'000'000};
    t.took("until", std::chrono::milliseconds(140), [&] {
        t.told("until", HOOKED(clock_nanosleep)(CLOCK_REALTIME, TIMER_ABSTIME, &at, nullptr));
    });
}

void tell_addresses(posix_side& t, const addrinfo* all) {
    for (; all != nullptr; all = all->ai_next) {
        char text[INET6_ADDRSTRLEN] = "?";
        if (all->ai_family == AF_INET)
            ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(all->ai_addr)->sin_addr, text,
                        sizeof text);
        else
            ::inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(all->ai_addr)->sin6_addr, text,
                        sizeof text);
        t.said("  address", text);
        t.told("  type", all->ai_socktype);
        t.said("  name", all->ai_canonname != nullptr ? all->ai_canonname : "-");
    }
}

POSIX_CASE(names_have_addresses) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_CANONNAME;
    for (const char* host : {"localhost", "127.0.0.1", "::1"}) {
        addrinfo* all = nullptr;
        const int r = HOOKED(getaddrinfo)(host, "80", &hints, &all);
        t.told(host, r == EAI_SYSTEM ? 1000 : r);
        if (r == 0) {
            tell_addresses(t, all);
            ::freeaddrinfo(all);
        }
    }
    addrinfo* all = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    t.told("a name is no number", HOOKED(getaddrinfo)("localhost", nullptr, &hints, &all));
    hints.ai_flags = AI_PASSIVE;
    t.told("here", HOOKED(getaddrinfo)(nullptr, "80", &hints, &all));
    tell_addresses(t, all);
    ::freeaddrinfo(all);
    t.told("nothing", HOOKED(getaddrinfo)(nullptr, nullptr, nullptr, &all));
    t.told("no such service", HOOKED(getaddrinfo)("localhost", "no-such-service", &hints, &all));
    hints.ai_socktype = 77;
    t.told("no such type", HOOKED(getaddrinfo)("localhost", "80", &hints, &all));
}

POSIX_CASE(addresses_have_names) {
    auto at = loopback(htons(80));
    char host[256] = "";
    char service[64] = "";
    t.told("names", HOOKED(getnameinfo)(as_address(at), sizeof at, host, sizeof host, service,
                                        sizeof service, 0));
    t.said("host", host);
    t.said("service", service);
    t.told("numbers", HOOKED(getnameinfo)(as_address(at), sizeof at, host, sizeof host, service,
                                          sizeof service, NI_NUMERICHOST | NI_NUMERICSERV));
    t.said("host", host);
    t.told("no room", HOOKED(getnameinfo)(as_address(at), sizeof at, host, 2, nullptr, 0, 0));
    t.told("room for one of two",
           HOOKED(getnameinfo)(as_address(at), sizeof at, host, 2, service, sizeof service, 0));
    t.told("room for the other",
           HOOKED(getnameinfo)(as_address(at), sizeof at, host, sizeof host, service, 1, 0));
    t.told("nothing asked",
           HOOKED(getnameinfo)(as_address(at), sizeof at, nullptr, 0, nullptr, 0, 0));
    t.told("too short", HOOKED(getnameinfo)(as_address(at), 3, host, sizeof host, nullptr, 0, 0));
}

void tell_host(posix_side& t, const hostent* h) {
    t.told("found", h != nullptr);
    if (h == nullptr) return t.said("error", std::to_string(h_errno)), void();
    t.said("  name", h->h_name);
    t.told("  family", h->h_addrtype);
    for (char** a = h->h_aliases; *a != nullptr; ++a) t.said("  alias", *a);
    for (char** a = h->h_addr_list; *a != nullptr; ++a)
        t.told("  byte", static_cast<unsigned char>((*a)[h->h_length - 1]));
}

POSIX_CASE(hosts_as_they_were_asked_for_once) {
    tell_host(t, HOOKED(gethostbyname)("localhost"));
    tell_host(t, HOOKED(gethostbyname2)("localhost", AF_INET6));
    const in_addr at = {htonl(INADDR_LOOPBACK)};
    tell_host(t, HOOKED(gethostbyaddr)(&at, sizeof at, AF_INET));
    tell_host(t, HOOKED(gethostbyname)("127.0.0.1"));
    tell_host(t, HOOKED(gethostbyname)("no..host"));
    hostent h{};
    hostent* found = nullptr;
    int error = 0;
    char room[4096];
    t.told("by name", HOOKED(gethostbyname_r)("localhost", &h, room, sizeof room, &found, &error));
    tell_host(t, found);
    t.told("by name and family",
           HOOKED(gethostbyname2_r)("localhost", AF_INET, &h, room, sizeof room, &found, &error));
    tell_host(t, found);
    t.told("by address",
           HOOKED(gethostbyaddr_r)(&at, sizeof at, AF_INET, &h, room, sizeof room, &found, &error));
    tell_host(t, found);
    t.told("no room", HOOKED(gethostbyname_r)("localhost", &h, room, 8, &found, &error));
    t.told("error", error);
    // Up to a sufficient size: what libc itself needs varies on the way.
    for (std::size_t bytes = 0; bytes < 1200; bytes += 21) {
        for (const char* const name : {"localhost", "127.0.0.1", "no..host"}) {
            error = -3;
            errno = ENOTTY;
            t.told(name, HOOKED(gethostbyname_r)(name, &h, room + 1, bytes, &found, &error));
            t.told("  with so many bytes", static_cast<long>(bytes));
            t.told("  error", error);
            t.told("  errno", errno);
            t.told("  found", found == &h);
        }
        error = -3;
        errno = ENOTTY;
        t.told("of that address",
               HOOKED(gethostbyaddr_r)(&at, sizeof at, AF_INET, &h, room, bytes, &found, &error));
        t.told("  error", error);
        t.told("  errno", errno);
        if (found != nullptr) tell_host(t, found);
    }
    t.told("no such family",
           HOOKED(gethostbyaddr_r)(&at, 3, AF_INET, &h, room, sizeof room, &found, &error));
}

pid_t child_that_ends_with(int code, unsigned ms) {
    const pid_t child = ::fork();
    if (child == 0) {
        timespec some = {0, static_cast<long>(ms) * 1'000'000};
        ::nanosleep(&some, nullptr);
        ::_exit(code);
    }
    return child;
}

POSIX_CASE(children_are_waited_for) {
    int status = -1;
    auto p = fd_pair::pipe();
    pid_t child = ::fork();
    if (child == 0) {
        char c;
        ::_exit(::read(p.a, &c, 1) == 1 ? 3 : 2);
    }
    t.told("still there", HOOKED(waitpid)(child, &status, WNOHANG));
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(p.b, "x", 1);
    });
    t.told("waitpid", HOOKED(waitpid)(child, &status, 0) == child);
    t.join();
    t.told("code", WEXITSTATUS(status));
    t.told("once", HOOKED(waitpid)(child, &status, 0));
    child = child_that_ends_with(4, 10);
    t.told("wait", HOOKED(wait)(&status) == child);
    t.told("code", WEXITSTATUS(status));
    t.told("nobody", HOOKED(wait)(&status));
    child = child_that_ends_with(5, 10);
    rusage used{};
    t.told("wait4", HOOKED(wait4)(child, nullptr, 0, &used) == child);
    t.told("used something", used.ru_maxrss > 0);
    child = child_that_ends_with(0, 900);
    ::kill(child, SIGKILL);
    t.told("of any", HOOKED(waitpid)(-1, &status, 0) == child);
    t.told("by a signal", WTERMSIG(status));
    t.told("bad options", HOOKED(waitpid)(-1, &status, 1 << 25));
}

std::atomic<int> ended_values{0};
pthread_key_t chained_key;
void value_ends(void* p) {
    ended_values += 1;
    // It makes one more, once.
    if (*static_cast<int*>(p) == 1) {
        static int last = 2;
        HOOKED(pthread_setspecific)(chained_key, &last);
    }
}

POSIX_CASE(keys_have_values_of_their_own) {
    pthread_key_t plain;
    t.told("create", HOOKED(pthread_key_create)(&plain, nullptr));
    t.told("create", HOOKED(pthread_key_create)(&chained_key, value_ends));
    t.told("none yet", HOOKED(pthread_getspecific)(plain) == nullptr);
    int mine = 0;
    int theirs = 1;
    t.told("set", HOOKED(pthread_setspecific)(plain, &mine));
    ended_values = 0;
    bool none = false;
    t.beside([&] {
        none = HOOKED(pthread_getspecific)(plain) == nullptr;
        HOOKED(pthread_setspecific)(plain, &theirs);
        HOOKED(pthread_setspecific)(chained_key, &theirs);
    });
    t.join();
    t.told("theirs began empty", none);
    t.told("mine is mine", HOOKED(pthread_getspecific)(plain) == &mine);
    t.told("destroyed at their end, in turn", ended_values);
    t.told("delete", HOOKED(pthread_key_delete)(plain));
    t.told("and the other", HOOKED(pthread_key_delete)(chained_key));
    t.told("once", HOOKED(pthread_key_delete)(plain));
    pthread_key_t next;
    t.told("create", HOOKED(pthread_key_create)(&next, nullptr));
    t.told("empty", HOOKED(pthread_getspecific)(next) == nullptr);
    t.told("delete", HOOKED(pthread_key_delete)(next));
    t.told("no key", HOOKED(pthread_setspecific)(12'345, &mine));
}

POSIX_CASE(mutexes_exclude) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    t.told("lock", HOOKED(pthread_mutex_lock)(&m));
    t.told("try", HOOKED(pthread_mutex_trylock)(&m));
    t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
    t.told("try", HOOKED(pthread_mutex_trylock)(&m));
    t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
    std::atomic<bool> held{false};
    std::atomic<bool> wanted{false};
    t.beside([&] {
        HOOKED(pthread_mutex_lock)(&m);
        held = true;
        while (!wanted) after_ms(1);
        after_ms(5);
        HOOKED(pthread_mutex_unlock)(&m);
    });
    while (!held) after_ms(1);
    timespec soon;
    ::clock_gettime(CLOCK_REALTIME, &soon);
    t.told("in vain", HOOKED(pthread_mutex_timedlock)(&m, &soon));
    ::clock_gettime(CLOCK_MONOTONIC, &soon);
    t.told("in vain", HOOKED(pthread_mutex_clocklock)(&m, CLOCK_MONOTONIC, &soon));
    wanted = true;
    t.told("at last", HOOKED(pthread_mutex_lock)(&m));
    t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
    t.join();
}

}  // namespace
