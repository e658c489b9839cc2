// Calls whose result depends on more than their own descriptor: on the room of a peer, on other
// waiters. Each is a case of the differential suite: a thread and a fiber record the same.

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "test/hook/suite.hpp"

namespace {

using namespace weft::testing;

POSIX_CASE(more_datagrams_than_a_peer_takes_are_waited_for) {
    const one_fd to(HOOKED(socket)(AF_UNIX, SOCK_DGRAM, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    socklen_t bytes = sizeof at;
    ::bind(to.n, as_address(at), sizeof at.sun_family);
    ::getsockname(to.n, as_address(at), &bytes);
    const one_fd from(HOOKED(socket)(AF_UNIX, SOCK_DGRAM, 0));
    constexpr int count = 1500;  // net.unix.max_dgram_qlen is hundreds at most
    t.beside([&] {
        after_ms(5);
        char c;
        for (int i = 0; i != count; ++i) HOOKED(recv)(to.n, &c, 1, 0);
    });
    int sent = 0;
    while (sent != count && HOOKED(sendto)(from.n, "x", 1, 0, as_address(at), bytes) == 1) ++sent;
    t.told("sent", sent);
    t.join();
}

// Each waiter is notified by the waiter that was notified before it, and the last waiter first.
POSIX_CASE(waits_with_a_mask_are_as_many_as_there_are_fibers) {
    constexpr int count = 100;
    std::list<fd_pair> all;
    for (int i = 0; i != count + 1; ++i) {
        int ends[2];
        HOOKED(pipe)(ends);
        all.emplace_back(ends[0], ends[1]);
    }
    std::atomic<int> told{0};
    sigset_t none;
    ::sigemptyset(&none);
    for (auto at = all.begin(); std::next(at) != all.end(); ++at)
        t.beside([&, at] {
            pollfd p = {std::next(at)->a, POLLIN, 0};
            const timespec limit = {8, 0};
            told += HOOKED(ppoll)(&p, 1, &limit, &none);
            HOOKED(write)(at->b, "x", 1);
        });
    after_ms(20);
    HOOKED(write)(all.back().b, "x", 1);
    t.join();
    t.told("told", told);
}

POSIX_CASE(a_wait_with_a_mask_needs_no_number) {
    auto p = fd_pair::pipe();
    sigset_t none;
    ::sigemptyset(&none);
    rlimit before;
    ::getrlimit(RLIMIT_NOFILE, &before);
    std::vector<int> all;
    const rlimit few = {static_cast<rlim_t>(p.b) + 64, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd; (fd = HOOKED(dup)(p.a)) >= 0;) all.push_back(fd);
    t.beside([&] {
        after_ms(20);
        HOOKED(write)(p.b, "x", 1);
    });
    pollfd q = {p.a, POLLIN, 0};
    fd_set r;
    FD_ZERO(&r);
    FD_SET(p.a, &r);
    t.told("ppoll", HOOKED(ppoll)(&q, 1, nullptr, &none));
    t.join();
    char c;
    HOOKED(read)(p.a, &c, 1);
    t.beside([&] {
        after_ms(20);
        HOOKED(write)(p.b, "x", 1);
    });
    t.told("pselect", HOOKED(pselect)(p.a + 1, &r, nullptr, nullptr, nullptr, &none));
    t.told("is in", FD_ISSET(p.a, &r));
    t.join();
    HOOKED(read)(p.a, &c, 1);
    const timespec some = {0, 30'000'000};
    t.took("in vain", std::chrono::milliseconds(30),
           [&] { t.told("in vain", HOOKED(ppoll)(&q, 1, &some, &none)); });
    for (const int fd : all) HOOKED(close)(fd);
    ::setrlimit(RLIMIT_NOFILE, &before);
}

// Its result comes when everything sent has been taken, or at its time limit; others run meanwhile.
POSIX_CASE(a_close_that_lingers_blocks_no_other) {
    sockaddr_in at;
    const one_fd listening(bound(SOCK_STREAM, at));
    const int from = HOOKED(socket)(AF_INET, SOCK_STREAM, 0);
    HOOKED(connect)(from, as_address(at), sizeof at);
    const one_fd to(HOOKED(accept)(listening.n, nullptr, nullptr));
    const std::string text(8'000'000, 'x');
    HOOKED(send)(from, text.data(), text.size(), MSG_DONTWAIT);
    const linger a_second = {1, 1};
    HOOKED(setsockopt)(from, SOL_SOCKET, SO_LINGER, &a_second, sizeof a_second);
    std::atomic<bool> is_closed{false};
    std::atomic<int> turns{0};
    t.beside([&] {
        for (; !is_closed; ++turns) after_ms(5);
    });
    t.took("close", std::chrono::milliseconds(900), [&] { t.told("close", HOOKED(close)(from)); });
    is_closed = true;
    t.join();
    t.told("others ran", turns > 20);
    t.told("again", HOOKED(close)(from));
}

// The connection is made on the way, and the text goes after it.
POSIX_CASE(a_send_that_connects_is_waited_for) {
    sockaddr_in at;
    const one_fd listening(bound(SOCK_STREAM, at));
    const one_fd first(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    const one_fd second(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    t.told("sendto", HOOKED(sendto)(first.n, "hello", 5, MSG_FASTOPEN, as_address(at), sizeof at));
    char text[] = "well";
    iovec one = {text, 4};
    msghdr m{};
    m.msg_name = &at;
    m.msg_namelen = sizeof at;
    m.msg_iov = &one;
    m.msg_iovlen = 1;
    t.told("sendmsg", HOOKED(sendmsg)(second.n, &m, MSG_FASTOPEN));
    for (int i = 0; i != 2; ++i) {
        const one_fd to(HOOKED(accept)(listening.n, nullptr, nullptr));
        set_timeout(to.n, SO_RCVTIMEO, 2000);
        char room[8] = {};
        t.told("recv", HOOKED(recv)(to.n, room, sizeof room, 0));
        t.said("text", room);
    }
    // A call that must not wait reports that.
    const one_fd third(HOOKED(socket)(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    t.told("not to wait",
           HOOKED(sendto)(third.n, "hello", 5, MSG_FASTOPEN, as_address(at), sizeof at));
    sockaddr_in nowhere;
    {
        const one_fd gone(bound(SOCK_STREAM, nowhere));
    }
    const one_fd fourth(HOOKED(socket)(AF_INET, SOCK_STREAM, 0));
    t.told("nobody listens",
           HOOKED(sendto)(fourth.n, "x", 1, MSG_FASTOPEN, as_address(nowhere), sizeof nowhere));
}

POSIX_CASE(a_yield_lets_others_run) {
    std::atomic<int> turns{0};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    const auto until = [&](int turn) {
        while (turns < turn && std::chrono::steady_clock::now() < end) HOOKED(sched_yield)();
        return turns++;
    };
    t.beside([&] {
        until(1);
        until(3);
    });
    t.told("first", until(0));
    t.told("third", until(2));
    t.told("yield", HOOKED(sched_yield)());
    t.join();
    t.told("in time", std::chrono::steady_clock::now() < end);
}

POSIX_CASE(a_spin_lock_is_waited_for_while_its_holder_waits) {
    pthread_spinlock_t l;
    ::pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE);
    t.told("free", HOOKED(pthread_spin_lock)(&l));
    bool owned_by_caller = true;
    t.beside([&] {
        const int r = HOOKED(pthread_spin_lock)(&l);
        t.told("in turn", r == 0 && !owned_by_caller);
        ::pthread_spin_unlock(&l);
    });
    after_ms(10);
    owned_by_caller = false;
    ::pthread_spin_unlock(&l);
    t.join();
    ::pthread_spin_destroy(&l);
}

// The descriptors of the parent's fiber are the parent's, and the child has them from the kernel
// alone.
POSIX_CASE(a_child_waits_for_the_shared_mutex_that_its_parent_has) {
    void* const room = ::mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto& m = *static_cast<pthread_mutex_t*>(room);
    pthread_mutexattr_t kind;
    ::pthread_mutexattr_init(&kind);
    ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    ::pthread_mutex_init(&m, &kind);
    ::pthread_mutexattr_destroy(&kind);
    t.told("lock", HOOKED(pthread_mutex_lock)(&m));
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        const bool is_free = ::pthread_mutex_trylock(&m) == 0;
        const bool is_locked = ::pthread_mutex_lock(&m) == 0;
        ::_exit((is_free ? 1 : 0) + (is_locked ? 2 : 0) +
                (::pthread_mutex_unlock(&m) == 0 ? 4 : 0));
    }
    after_ms(300);
    t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
    int status = 0;
    t.told("child", HOOKED(waitpid)(child, &status, 0) == child);
    t.told("how it ended", status);
    t.told("it is free", HOOKED(pthread_mutex_trylock)(&m));
    HOOKED(pthread_mutex_unlock)(&m);
    ::pthread_mutex_destroy(&m);
    ::munmap(room, sizeof m);
}

// The thread's control block is on a stack that stays, so that libc can see that the thread was
// joined.
POSIX_CASE(a_thread_that_was_joined_is_none) {
    if (WEFT_ASAN != 0 || WEFT_TSAN != 0) return t.said("a sanitizer", "keeps threads itself");
    constexpr std::size_t bytes = 256 * 1024;
    void* const room =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t how;
    ::pthread_attr_init(&how);
    ::pthread_attr_setstack(&how, room, bytes);
    pthread_t which;
    ::pthread_create(&which, &how, [](void* of) { return of; }, nullptr);
    ::pthread_attr_destroy(&how);
    t.told("join", HOOKED(pthread_join)(which, nullptr));
    t.told("again", HOOKED(pthread_join)(which, nullptr));
    ::munmap(room, bytes);
}

POSIX_CASE(select_waits_for_numbers_beyond_a_set_of_libc) {
    const fd_pair p = fd_pair::pipe();
    const one_fd high(HOOKED(fcntl)(p.a, F_DUPFD, 1500));
    if (high.n < 0) return t.said("the limit of descriptors", "is low");
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(p.b, "x", 1);
    });
    constexpr int bits = 8 * sizeof(unsigned long);
    std::vector<unsigned long> set(64);
    set[static_cast<std::size_t>(high.n / bits)] |= 1ul << high.n % bits;
    t.told("select", HOOKED(select)(high.n + 1, reinterpret_cast<fd_set*>(set.data()), nullptr,
                                    nullptr, nullptr));
    t.told("it", (set[static_cast<std::size_t>(high.n / bits)] >> high.n % bits & 1) != 0);
    t.join();
}

POSIX_CASE(a_mask_without_a_timeout_waits) {
    const fd_pair p = fd_pair::pipe();
    const one_fd set(::epoll_create1(0));
    epoll_event e{};
    e.events = EPOLLIN;
    ::epoll_ctl(set.n, EPOLL_CTL_ADD, p.a, &e);
    sigset_t none;
    sigemptyset(&none);
    for (int i = 0; i != 2; ++i) {
        t.beside([&] {
            after_ms(5);
            HOOKED(write)(p.b, "x", 1);
        });
        if (i == 0) {
            fd_set reads;
            FD_ZERO(&reads);
            FD_SET(p.a, &reads);
            t.told("pselect", HOOKED(pselect)(p.a + 1, &reads, nullptr, nullptr, nullptr, &none));
        } else {
            t.told("epoll_pwait", HOOKED(epoll_pwait)(set.n, &e, 1, -1, &none));
        }
        t.join();
        char c;
        t.told("read", HOOKED(read)(p.a, &c, 1));
    }
}

// Each waiter sees an edge once, and an edge that was delivered to one waiter does not end the
// other's wait without a result.
POSIX_CASE(each_of_two_that_wait_in_one_set_hears_of_an_edge) {
    const one_fd counter(HOOKED(eventfd)(0, EFD_NONBLOCK));
    const one_fd set(::epoll_create1(0));
    epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    ::epoll_ctl(set.n, EPOLL_CTL_ADD, counter.n, &e);
    int heard[2] = {-2, -2};
    std::atomic<int> heard_by{0};
    for (int& mine : heard)
        t.beside([&] {
            sigset_t none;
            sigemptyset(&none);
            epoll_event got;
            mine = HOOKED(epoll_pwait)(set.n, &got, 1, -1, &none);
            ++heard_by;
        });
    const std::uint64_t v = 1;
    for (int i = 0; i != 2; ++i) {
        after_ms(20);
        // Two edges that nothing has heard of are one, which happens on a busy machine.
        for (int ms = 0; ms != 5000 && heard_by < i; ++ms) after_ms(1);
        HOOKED(write)(counter.n, &v, sizeof v);
    }
    t.join();
    t.told("one", heard[0]);
    t.told("the other", heard[1]);
}

POSIX_CASE(a_timed_lock_until_the_end_of_time_waits) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    HOOKED(pthread_mutex_lock)(&m);
    int answer = -1;
    t.beside([&] {
        const timespec until = {0x7fffffffffffffff, 0};
        answer = HOOKED(pthread_mutex_timedlock)(&m, &until);
        if (answer == 0) HOOKED(pthread_mutex_unlock)(&m);
    });
    after_ms(10);
    HOOKED(pthread_mutex_unlock)(&m);
    t.join();
    t.told("timedlock", answer);
}

POSIX_CASE(a_fifo_is_opened_by_two_at_once) {
    std::string path = "/tmp/weft.fifo.XXXXXX";
    ::close(::mkstemp(path.data()));
    ::unlink(path.c_str());
    t.told("mkfifo", ::mkfifo(path.c_str(), 0600));
    t.beside([&] {
        after_ms(5);
        const one_fd writes(HOOKED(open)(path.c_str(), O_WRONLY));
        HOOKED(write)(writes.n, "x", 1);
    });
    const one_fd reads(HOOKED(open)(path.c_str(), O_RDONLY));
    t.told("opened", reads.n >= 0);
    char c = 0;
    t.told("read", HOOKED(read)(reads.n, &c, 1));
    t.join();
    t.told("the end", HOOKED(read)(reads.n, &c, 1));
    ::unlink(path.c_str());
}

POSIX_CASE(a_stream_is_opened_anew_as_a_fifo) {
    std::string path = "/tmp/weft.fifo.XXXXXX";
    ::close(::mkstemp(path.data()));
    ::unlink(path.c_str());
    t.told("mkfifo", ::mkfifo(path.c_str(), 0600));
    auto p = fd_pair::pipe();
    t.beside([&] {
        char c = 0;
        t.told("what it held is written", HOOKED(read)(p.a, &c, 1));
        FILE* writes = HOOKED(fopen)("/dev/null", "w");
        writes = HOOKED(freopen)(path.c_str(), "w", writes);
        HOOKED(fputs)("text", writes);
        HOOKED(fclose)(writes);
    });
    FILE* const before = ::fdopen(p.b, "w");
    const int number = std::exchange(p.b, -1);
    HOOKED(fputs)("x", before);
    FILE* const reads = HOOKED(freopen64)(path.c_str(), "r", before);
    t.told("the same", reads == before);
    t.told("by its number", ::fileno(reads) == number);
    char text[8] = {};
    t.told("fread", static_cast<long>(HOOKED(fread)(text, 1, sizeof text, reads)));
    t.said("text", text);
    t.told("the end", HOOKED(feof)(reads) != 0);
    HOOKED(fclose)(reads);
    t.join();
    ::unlink(path.c_str());
}

POSIX_CASE(a_timed_lock_with_a_bad_time_or_clock_is_refused) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    HOOKED(pthread_mutex_lock)(&m);
    t.beside([&] {
        timespec until = {0, 2000 * 1000 * 1000};
        t.told("a bad time", HOOKED(pthread_mutex_timedlock)(&m, &until));
        until.tv_nsec = 0;
        t.told("a bad clock", HOOKED(pthread_mutex_clocklock)(&m, 99, &until));
    });
    t.join();
    HOOKED(pthread_mutex_unlock)(&m);
}

}  // namespace
