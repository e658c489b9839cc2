// Cases of poll, select and epoll.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;
using std::chrono::milliseconds;

void tell_all(posix_side& t, const pollfd* all, nfds_t count) {
    for (nfds_t i = 0; i < count; ++i) t.told("  revents", all[i].revents);
}

POSIX_CASE(poll_counts_as_the_system_does) {
    auto s = fd_pair::sockets();
    auto p = fd_pair::pipe();
    pollfd all[6] = {{s.a, POLLIN | POLLOUT, 0}, {s.a, POLLIN, 0},     {-1, POLLIN, 7},
                     {p.b, POLLOUT, 0},          {987'654, POLLIN, 0}, {p.a, 0, 0}};
    t.told("poll", HOOKED(poll)(all, 6, -1));
    tell_all(t, all, 6);
    t.told("of none", HOOKED(poll)(nullptr, 0, 0));
    t.took("of none", milliseconds(10), [&] { t.told("of none", HOOKED(poll)(nullptr, 0, 11)); });
    t.told("at once", HOOKED(poll)(all + 1, 1, 0));
    t.took("in vain", milliseconds(10), [&] {
        pollfd two[2] = {{s.a, POLLIN, 0}, {-7, POLLIN, 0}};
        t.told("in vain", HOOKED(poll)(two, 2, 11));
        tell_all(t, two, 2);
    });
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "x", 1);
        HOOKED(write)(p.b, "x", 1);
    });
    pollfd both[3] = {{p.a, POLLIN, 0}, {p.a, POLLIN, 0}, {987'654, 0, 0}};
    t.told("the same twice", HOOKED(poll)(both, 2, 1000));
    tell_all(t, both, 2);
    t.join();
    t.told("ready", HOOKED(__poll_chk)(both, 2, -1, sizeof both));
    t.told("with one that is not open", HOOKED(poll)(both, 3, 0));
    tell_all(t, both, 3);
    p.close_b();
    char c[4];
    t.told("read", HOOKED(read)(p.a, c, 4));
    pollfd* volatile nowhere = nullptr;
    pollfd end = {p.a, 0, 0};
    t.told("the end", HOOKED(poll)(&end, 1, -1));
    tell_all(t, &end, 1);
    t.told("a bad address", HOOKED(poll)(nowhere, 3, 0));
    if (!may_give_bad_lists) return;
    const volatile nfds_t too_many = nfds_t{1} << 31;
    const volatile nfds_t none_for_the_system = nfds_t{1} << 32;
    t.told("more than may be open", HOOKED(poll)(&end, too_many, -1));
    t.told("more than may be open", HOOKED(ppoll)(&end, too_many, nullptr, nullptr));
    t.told("a count of which half is taken", HOOKED(poll)(&end, none_for_the_system, 3));
}

POSIX_CASE(poll_waits_for_an_end) {
    auto s = fd_pair::sockets();
    t.beside([&] {
        after_ms(5);
        s.close_b();
    });
    pollfd p = {s.a, 0, 0};
    t.told("poll", HOOKED(poll)(&p, 1, 2000));
    tell_all(t, &p, 1);
    t.join();
    auto q = fd_pair::pipe();
    std::string much(1'000'000, 'x');
    HOOKED(fcntl)(q.b, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    HOOKED(write)(q.b, much.data(), much.size());
    t.beside([&] {
        after_ms(5);
        q.close_a();
    });
    pollfd w = {q.b, POLLOUT, 0};
    t.told("nobody reads any more", HOOKED(poll)(&w, 1, 2000));
    tell_all(t, &w, 1);
    t.join();
}

// Both are notified of what comes, and the query for an end comes first, and finds none.
POSIX_CASE(a_query_for_an_end_leaves_bytes_to_their_reader) {
    for (const int events : {POLLRDHUP, POLLRDBAND}) {
        auto s = fd_pair::sockets();
        set_timeout(s.a, SO_RCVTIMEO, 100);
        long queried = -1;
        long received = -1;
        t.beside([&] {
            pollfd p = {s.a, static_cast<short>(events), 0};
            queried = HOOKED(poll)(&p, 1, 50);
        });
        t.beside([&] {
            char c;
            received = HOOKED(recv)(s.a, &c, 1, 0);
        });
        after_ms(10);
        HOOKED(send)(s.b, "x", 1, 0);
        t.join();
        t.told("queried", queried);
        t.told("received", received);
    }
}

POSIX_CASE(ppoll_has_finer_time) {
    auto s = fd_pair::sockets();
    pollfd p = {s.a, POLLIN, 0};
    const timespec some = {0, 12'000'000};
    const timespec bad = {0, 1'000'000'000};
    const timespec none = {0, 0};
    t.took("in vain", milliseconds(12),
           [&] { t.told("in vain", HOOKED(ppoll)(&p, 1, &some, nullptr)); });
    t.told("some", some.tv_nsec);
    t.told("at once", HOOKED(ppoll)(&p, 1, &none, nullptr));
    t.told("bad", HOOKED(ppoll)(&p, 1, &bad, nullptr));
    sigset_t mask;
    ::sigfillset(&mask);
    t.took("with a mask", milliseconds(12),
           [&] { t.told("with a mask", HOOKED(ppoll)(&p, 1, &some, &mask)); });
    t.told("at once with a mask", HOOKED(ppoll)(&p, 1, &none, &mask));
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "x", 1);
    });
    t.told("for ever", HOOKED(__ppoll_chk)(&p, 1, nullptr, &mask, sizeof p));
    tell_all(t, &p, 1);
    t.join();
    t.told("ready", HOOKED(ppoll)(&p, 1, nullptr, nullptr));
}

POSIX_CASE(select_leaves_what_is_ready) {
    auto s = fd_pair::sockets();
    auto p = fd_pair::pipe();
    const int most = std::max({s.a, s.b, p.a, p.b}) + 1;
    fd_set r;
    fd_set w;
    const auto fill = [&] {
        FD_ZERO(&r);
        FD_ZERO(&w);
        FD_SET(s.a, &r);
        FD_SET(p.a, &r);
    };
    const auto tell = [&](const char* what, long n) {
        t.told(what, n);
        t.told("  socket", FD_ISSET(s.a, &r));
        t.told("  pipe", FD_ISSET(p.a, &r));
        t.told("  to write", FD_ISSET(p.b, &w));
    };
    fill();
    timeval some = {0, 12'000};
    t.took("in vain", milliseconds(12),
           [&] { tell("in vain", HOOKED(select)(most, &r, nullptr, nullptr, &some)); });
    t.told("no time left", some.tv_sec * 1000 + some.tv_usec / 1000);
    fill();
    FD_SET(p.b, &w);
    tell("to write", HOOKED(select)(most, &r, &w, nullptr, nullptr));
    fill();
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(p.b, "x", 1);
    });
    timeval much = {10, 0};
    tell("read", HOOKED(select)(most, &r, nullptr, nullptr, &much));
    t.told("time left", much.tv_sec == 9);
    t.join();
    fill();
    timeval none = {0, 0};
    tell("at once", HOOKED(select)(most, &r, nullptr, nullptr, &none));
    timeval bad = {-1, 0};
    t.told("bad time", HOOKED(select)(most, &r, nullptr, nullptr, &bad));
    t.told("bad count", HOOKED(select)(-1, &r, nullptr, nullptr, nullptr));
    fill();
    FD_SET(900, &r);
    t.told("not open", HOOKED(select)(901, &r, nullptr, nullptr, nullptr));
    timeval nap = {0, 11'000};
    t.took("of none", milliseconds(10),
           [&] { t.told("of none", HOOKED(select)(0, nullptr, nullptr, nullptr, &nap)); });
}

POSIX_CASE(a_timeout_may_be_beyond_all_clocks) {
    auto s = fd_pair::sockets();
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "x", 1);
    });
    pollfd p = {s.a, POLLIN, 0};
    const timespec ages = {std::numeric_limits<time_t>::max(), 999'999'999};
    t.told("ppoll", HOOKED(ppoll)(&p, 1, &ages, nullptr));
    t.join();
}

POSIX_CASE(pselect_has_a_mask) {
    auto s = fd_pair::sockets();
    sigset_t mask;
    ::sigfillset(&mask);
    fd_set r;
    const auto fill = [&] {
        FD_ZERO(&r);
        FD_SET(s.a, &r);
    };
    const timespec some = {0, 12'000'000};
    fill();
    t.took("in vain", milliseconds(12), [&] {
        t.told("in vain", HOOKED(pselect)(s.a + 1, &r, nullptr, nullptr, &some, &mask));
    });
    t.told("set", FD_ISSET(s.a, &r));
    fill();
    t.told("without", HOOKED(pselect)(s.a + 1, &r, nullptr, nullptr, &some, nullptr));
    const timespec none = {0, 0};
    fill();
    t.told("at once", HOOKED(pselect)(s.a + 1, &r, nullptr, nullptr, &none, &mask));
    t.told("set", FD_ISSET(s.a, &r));
    fill();
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "x", 1);
    });
    t.told("for ever", HOOKED(pselect)(s.a + 1, &r, nullptr, nullptr, nullptr, &mask));
    t.told("set", FD_ISSET(s.a, &r));
    t.join();
}

POSIX_CASE(epoll_sets_are_waited_for) {
    auto s = fd_pair::sockets();
    const one_fd set(::epoll_create1(0));
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.u32 = 77;
    ::epoll_ctl(set.n, EPOLL_CTL_ADD, s.a, &e);
    epoll_event got[4] = {};
    t.told("at once", HOOKED(epoll_wait)(set.n, got, 4, 0));
    t.took("in vain", milliseconds(10),
           [&] { t.told("in vain", HOOKED(epoll_wait)(set.n, got, 4, 11)); });
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "x", 1);
    });
    t.told("for ever", HOOKED(epoll_wait)(set.n, got, 4, -1));
    t.told("which", got[0].data.u32);
    t.told("still", HOOKED(epoll_wait)(set.n, got, 4, -1));
    char c;
    t.join();
    t.told("read", HOOKED(read)(s.a, &c, 1));
    sigset_t mask;
    ::sigfillset(&mask);
    t.took("with a mask", milliseconds(10),
           [&] { t.told("with a mask", HOOKED(epoll_pwait)(set.n, got, 4, 11, &mask)); });
    t.told("at once with a mask", HOOKED(epoll_pwait)(set.n, got, 4, 0, &mask));
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(s.b, "y", 1);
    });
    t.told("for ever", HOOKED(epoll_pwait)(set.n, got, 4, -1, &mask));
    t.told("without", HOOKED(epoll_pwait)(set.n, got, 4, -1, nullptr));
    t.join();
    const timespec some = {0, 12'000'000};
    const timespec bad = {0, -1};
    t.told("by finer time", HOOKED(epoll_pwait2)(set.n, got, 4, nullptr, &mask));
    t.told("bad", HOOKED(epoll_pwait2)(set.n, got, 4, &bad, nullptr));
    t.told("read", HOOKED(read)(s.a, &c, 1));
    t.took("in vain", milliseconds(12),
           [&] { t.told("in vain", HOOKED(epoll_pwait2)(set.n, got, 4, &some, nullptr)); });
    t.took("with a mask", milliseconds(12),
           [&] { t.told("with a mask", HOOKED(epoll_pwait2)(set.n, got, 4, &some, &mask)); });
    t.told("no room", HOOKED(epoll_wait)(set.n, got, 0, 0));
    t.told("no set", HOOKED(epoll_wait)(s.a, got, 4, 0));
    t.told("not open", HOOKED(epoll_wait)(-1, got, 4, -1));
}

POSIX_CASE(many_wait_for_one) {
    auto p = fd_pair::pipe();
    std::atomic<int> sum{0};
    for (int i = 0; i < 3; ++i)
        t.beside([&] {
            char c;
            if (HOOKED(read)(p.a, &c, 1) == 1) sum += c;
        });
    after_ms(5);
    for (const char c : {'\1', '\2', '\4'}) {
        t.told("write", HOOKED(write)(p.b, &c, 1));
        after_ms(2);
    }
    t.join();
    t.told("each has one", sum);
}

POSIX_CASE(sets_may_be_of_any_size) {
    auto p = fd_pair::pipe();
    const one_fd high(HOOKED(fcntl)(p.a, F_DUPFD, reinterpret_cast<void*>(1500)));
    std::vector<unsigned long> words(1 << 10);
    auto* const set = reinterpret_cast<fd_set*>(words.data());
    const auto n = static_cast<unsigned>(high.n);
    const auto fill = [&] { words[n / 64] |= 1ul << n % 64; };
    const auto write_after = [&](unsigned ms) {
        t.beside([&p, ms] {
            after_ms(ms);
            HOOKED(write)(p.b, "x", 1);
        });
    };
    char c;
    fill();
    write_after(5);
    t.told("select", HOOKED(select)(high.n + 1, set, nullptr, nullptr, nullptr));
    t.told("set", words[n / 64] == 1ul << n % 64);
    t.join();
    t.told("more than may be open", HOOKED(select)(1 << 16, set, nullptr, nullptr, nullptr));
    t.told("read", HOOKED(read)(high.n, &c, 1));
    sigset_t mask;
    ::sigemptyset(&mask);
    write_after(5);
    t.told("pselect", HOOKED(pselect)(high.n + 1, set, nullptr, nullptr, nullptr, &mask));
    t.told("set", words[n / 64] == 1ul << n % 64);
    t.join();
    t.told("read", HOOKED(read)(high.n, &c, 1));
    const timespec some = {0, 12'000'000};
    t.told("in vain", HOOKED(pselect)(high.n + 1, set, nullptr, nullptr, &some, &mask));
    t.told("clear", words[n / 64] == 0);
    timeval finer = {0, 12'000};
    fill();
    t.told("in vain", HOOKED(select)(high.n + 1, set, nullptr, nullptr, &finer));
    t.told("clear", words[n / 64] == 0);
    words[1600 / 64] |= 1;
    t.told("not open", HOOKED(select)(1700, set, nullptr, nullptr, &finer));
    t.told("as it was", words[1600 / 64] == 1);
}

POSIX_CASE(a_mask_lets_signals_through_that_are_pending) {
    struct sigaction count{};
    struct sigaction before;
    static std::atomic<int> counted;
    counted = 0;
    count.sa_handler = [](int) { ++counted; };
    ::sigaction(SIGUSR2, &count, &before);
    sigset_t blocked;
    sigset_t open;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &open);
    ::sigdelset(&open, SIGUSR2);
    const one_fd set(::epoll_create1(0));
    const timespec long_time = {5, 0};
    epoll_event e;
    ::raise(SIGUSR2);
    t.told("ppoll", HOOKED(ppoll)(nullptr, 0, &long_time, &open));
    ::raise(SIGUSR2);
    t.told("pselect", HOOKED(pselect)(0, nullptr, nullptr, nullptr, &long_time, &open));
    ::raise(SIGUSR2);
    t.told("epoll_pwait", HOOKED(epoll_pwait)(set.n, &e, 1, 5000, &open));
    ::raise(SIGUSR2);
    t.told("epoll_pwait2", HOOKED(epoll_pwait2)(set.n, &e, 1, &long_time, &open));
    t.told("handled", counted);
    ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
    ::sigaction(SIGUSR2, &before, nullptr);
}

POSIX_CASE(what_another_has_taken_is_waited_for_anew) {
    const one_fd set(::epoll_create1(0));
    const one_fd counter(HOOKED(eventfd)(0, EFD_NONBLOCK));
    epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    ::epoll_ctl(set.n, EPOLL_CTL_ADD, counter.n, &e);
    std::atomic<int> told{0};
    for (int i = 0; i < 2; ++i)
        t.beside([&] {
            sigset_t mask;
            ::sigemptyset(&mask);
            epoll_event got;
            if (HOOKED(epoll_pwait)(set.n, &got, 1, -1, &mask) == 1) ++told;
        });
    const std::uint64_t one = 1;
    for (int i = 0; i < 2; ++i) {
        after_ms(20);
        HOOKED(write)(counter.n, &one, sizeof one);
    }
    t.join();
    t.told("each was told", told);
}

// How much of a core a wait costs for an event that does not come, while one that was not requested
// is ready.
POSIX_CASE(urgent_data_are_waited_for_beside_others) {
    sockaddr_in at;
    const one_fd l(bound(SOCK_STREAM, at));
    const one_fd a(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    HOOKED(connect)(a.n, as_address(at), sizeof at);
    const one_fd b(HOOKED(accept)(l.n, nullptr, nullptr));
    HOOKED(write)(b.n, "x", 1);
    after_ms(2);
    pollfd p = {a.n, POLLPRI, 0};
    const auto used = [] {
        timespec now;
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
    };
    const auto wait_in_vain = [&](const char* what) {
        const auto before = used();
        t.told(what, HOOKED(poll)(&p, 1, 100));
        t.told("  idle", used() - before < 10);
    };
    wait_in_vain("urgent data alone");
    p.events = 0;
    wait_in_vain("an error alone");
    fd_set u;
    FD_ZERO(&u);
    FD_SET(a.n, &u);
    t.beside([&] {
        after_ms(5);
        HOOKED(send)(b.n, "!", 1, MSG_OOB);
    });
    t.told("select", HOOKED(select)(a.n + 1, nullptr, nullptr, &u, nullptr));
    t.join();
    p.events = POLLPRI;
    t.told("poll", HOOKED(poll)(&p, 1, -1));
    tell_all(t, &p, 1);
}

}  // namespace
