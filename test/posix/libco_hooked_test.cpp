// A server and its clients, as programs for libco have them: plain calls of the system, in
// coroutines of one thread.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "co_routine.h"
#include "co_routine_inner.h"
#include "test/support/counted.hpp"

namespace {

template <class F>
stCoRoutine_t* run_co(F& f) {
    stCoRoutine_t* co = nullptr;
    EXPECT_EQ(0, co_create(
                     &co, nullptr,
                     [](void* p) -> void* {
                         co_enable_hook_sys();
                         (*static_cast<F*>(p))();
                         return nullptr;
                     },
                     &f));
    co_resume(co);
    return co;
}

void run_loop_until(const bool& done) {
    co_eventloop(
        co_get_epoll_ct(), [](void* d) { return *static_cast<const bool*>(d) ? -1 : 0; },
        const_cast<bool*>(&done));
}

TEST(co_hooks, make_a_read_suspend_only_its_coroutine) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::string said;
    bool done = false;
    auto reads = [&] {
        char c = 0;
        said += '1';
        EXPECT_EQ(::read(ends[0], &c, 1), 1);
        said += c;
        done = true;
    };
    stCoRoutine_t* const co = run_co(reads);
    EXPECT_EQ(said, "1");
    EXPECT_EQ(::write(ends[1], "2", 1), 1);
    run_loop_until(done);
    EXPECT_EQ(said, "12");
    co_release(co);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(co_hooks, make_a_poll_without_fds_a_sleep) {
    bool done = false, other = false;
    auto sleeps = [&] {
        EXPECT_EQ(::poll(nullptr, 0, 5), 0);
        EXPECT_TRUE(other);
        done = true;
    };
    auto runs = [&] { other = true; };
    stCoRoutine_t* const a = run_co(sleeps);
    stCoRoutine_t* const b = run_co(runs);
    run_loop_until(done);
    co_release(a);
    co_release(b);
}

// libco's table ends at 102 400.
TEST(co_hooks, work_for_an_fd_beyond_the_table_of_libco) {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit before = limit;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 150'000);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    // Beyond libco's table of 102 400, or the highest that the system allows.
    const int number = static_cast<int>(limit.rlim_cur - limit.rlim_cur / 16);
    const int high = ::fcntl(ends[0], F_DUPFD, number);
    ASSERT_GE(high, number);
    bool done = false;
    auto reads = [&] {
        char c = 0;
        pollfd p{high, POLLIN, 0};
        EXPECT_EQ(::poll(&p, 1, -1), 1);
        EXPECT_EQ(co_poll(co_get_epoll_ct(), &p, 1, -1), 1);
        EXPECT_EQ(::read(high, &c, 1), 1);
        EXPECT_EQ(::read(high, &c, 1), 1);
        done = true;
    };
    auto writes = [&] {
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
        co_poll(co_get_epoll_ct(), nullptr, 0, 2);
        EXPECT_EQ(::write(ends[1], "y", 1), 1);
    };
    stCoRoutine_t* const r = run_co(reads);
    stCoRoutine_t* const w = run_co(writes);
    run_loop_until(done);
    co_release(r);
    co_release(w);
    ::close(high);
    ::close(ends[0]);
    ::close(ends[1]);
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(co_hooks, let_a_coroutine_be_released_during_a_call) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    int destroyed = 0;
    auto reads = [&] {
        weft::testing::counted c{destroyed};
        char byte = 0;
        EXPECT_EQ(::read(ends[0], &byte, 1), 1);
        ADD_FAILURE() << "came back";
    };
    co_release(run_co(reads));
    EXPECT_EQ(destroyed, 1);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(co_hooks, work_in_a_forked_process) {
    co_init_curr_thread_env();
    const pid_t pid = ::fork();
    if (pid == 0) {
        int ends[2];
        if (::pipe(ends) != 0) ::_exit(9);
        bool waited = false, done = false;
        auto reads = [&] {
            char c = 0;
            done = ::read(ends[0], &c, 1) == 1 && waited;
        };
        run_co(reads);
        waited = true;
        if (::write(ends[1], "x", 1) != 1) ::_exit(8);
        run_loop_until(done);
        ::_exit(done ? 0 : 7);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Idle coroutines wait in a list for a connection and a resume, as in libco's own server.
struct echo_server {
    struct session {
        stCoRoutine_t* co = nullptr;
        int fd = -1;
        echo_server* of = nullptr;
    };
    int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    std::vector<session*> free_ones;
    std::vector<session> sessions;
    stCoRoutine_t* acceptor = nullptr;

    explicit echo_server(std::size_t count) : sessions(count) {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* const a = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(listener, a, length), 0);
        EXPECT_EQ(::listen(listener, 64), 0);
        EXPECT_EQ(::getsockname(listener, a, &length), 0);
        for (session& s : sessions) {
            s.of = this;
            co_create(&s.co, nullptr, serve, &s);
            co_resume(s.co);
        }
        co_create(&acceptor, nullptr, accept_all, this);
        co_resume(acceptor);
    }
    ~echo_server() {
        co_release(acceptor);
        for (session& s : sessions) co_release(s.co);
        ::close(listener);
    }
    static void* serve(void* p) {
        co_enable_hook_sys();
        auto& s = *static_cast<session*>(p);
        for (;;) {
            s.of->free_ones.push_back(&s);
            co_yield_ct();
            char bytes[1024];
            for (ssize_t n; (n = ::read(s.fd, bytes, sizeof bytes)) > 0;)
                if (::write(s.fd, bytes, static_cast<std::size_t>(n)) != n) break;
            ::close(s.fd);
        }
    }
    static void* accept_all(void* p) {
        co_enable_hook_sys();
        auto& me = *static_cast<echo_server*>(p);
        for (;;) {
            const int fd = co_accept(me.listener, nullptr, nullptr);
            if (fd < 0) continue;
            while (me.free_ones.empty()) ::poll(nullptr, 0, 1);
            session* const s = me.free_ones.back();
            me.free_ones.pop_back();
            s->fd = fd;
            co_resume(s->co);
        }
    }
};

TEST(co_hooks, serve_many_clients_from_one_thread) {
    echo_server server(8);
    static constexpr int clients = 20;
    int left = clients;
    bool done = false;
    std::string sent = "a line that comes back";
    auto client = [&] {
        for (int round = 0; round < 3; ++round) {
            const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
            ASSERT_EQ(
                ::connect(fd, reinterpret_cast<sockaddr*>(&server.address), sizeof server.address),
                0);
            for (int i = 0; i < 5; ++i) {
                char got[64];
                EXPECT_EQ(::write(fd, sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
                ASSERT_EQ(::recv(fd, got, sent.size(), MSG_WAITALL),
                          static_cast<ssize_t>(sent.size()));
                EXPECT_EQ(std::string(got, sent.size()), sent);
            }
            ::close(fd);
        }
        done = --left == 0;
    };
    std::vector<stCoRoutine_t*> all;
    for (int i = 0; i < clients; ++i) all.push_back(run_co(client));
    run_loop_until(done);
    EXPECT_EQ(left, 0);
    for (stCoRoutine_t* co : all) co_release(co);
}

}  // namespace
