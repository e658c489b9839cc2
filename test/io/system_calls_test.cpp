// What sockets cost in system calls, as a tracer counts them: data that is there, one; a
// request of an echo, two and a share of the wait.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/nothing_spare.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::io_kind;
using weft::unix_stream;

struct system_call {
    std::uint64_t number;
    std::int64_t result;
};
using call_list = std::vector<system_call>;

// Marks the start and the end of the count: a call that weft never makes.
void mark() { static_cast<void>(::getpgid(0)); }

// In the child: a test of gtest's would be lost there.
void must(bool well) {
    if (well) return;
    std::fputs("the traced process fails\n", stderr);
    ::_exit(1);
}

// In a fiber of a loop with epoll.
void run_traced(void (*body)()) {
    ::alarm(20);
    bool ended = false;
    weft::loop l(weft::make_io_driver(io_kind::epoll));
    fiber f(
        [&] {
            body();
            ended = true;
        },
        {.on = l});
    l.run();
    must(ended);
}

// The calls of body() between its two marks, in a process of its own. None: it must not be traced.
std::optional<call_list> trace(void (*body)()) {
    constexpr int refused = 77;
    const ::pid_t child = ::fork();
    if (child == 0) {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(refused);
        ::raise(SIGSTOP);
        run_traced(body);
        ::_exit(0);
    }
    call_list all;
    int marks = 0;
    int status = 0;
    const auto next = [&] { return ::waitpid(child, &status, 0) == child && WIFSTOPPED(status); };
    if (!next()) return std::nullopt;
    const long wishes = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    bool traced = ::ptrace(PTRACE_SETOPTIONS, child, nullptr, wishes) == 0;
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    while (next()) {
        long signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            signal = 0;
            __ptrace_syscall_info info{};
            if (::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) traced = false;
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
                if (info.entry.nr == SYS_getpgid)
                    ++marks;
                else if (marks == 1)
                    all.push_back({info.entry.nr, 0});
            } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && marks == 1 && !all.empty()) {
                all.back().result = info.exit.rval;
            }
        }
        ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
    }
    if (!traced) return std::nullopt;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(marks, 2);
    return all;
}

// How many there were of each kind.
struct bill {
    long receives = 0;
    long sends = 0;
    long waits = 0;
    long controls = 0;  // epoll_ctl
    long in_vain = 0;   // nothing was there
    long others = 0;

    explicit bill(const call_list& all) {
        for (const system_call& c : all) {
            in_vain += c.result == -EAGAIN;
            switch (c.number) {
                case SYS_recvfrom:
                    ++receives;
                    break;
                case SYS_sendto:
                    ++sends;
                    break;
                case SYS_epoll_pwait2:
                case SYS_epoll_pwait:
                    ++waits;
                    break;
                case SYS_epoll_ctl:
                    ++controls;
                    break;
                case SYS_clock_gettime:  // where the system has no quicker one
                    break;
                case SYS_rt_sigprocmask:
                    others += !WEFT_BACKEND_UCONTEXT;  // each switch makes two there
                    break;
                default:
                    ++others;
            }
        }
    }
};

class system_calls : public ::testing::Test {
protected:
    void SetUp() override {
        if (WEFT_TEST_ASAN || WEFT_TEST_TSAN)
            GTEST_SKIP() << "a sanitizer's runtime makes calls of its own";
        weft::testing::nothing_spare();  // giving back is a call too
    }
    static std::optional<bill> bill_of(void (*body)()) {
        const auto all = trace(body);
        if (!all) return std::nullopt;
        return bill(*all);
    }
};

#define BILL_OR_SKIP(name, ...)                               \
    const auto name##_or_none = bill_of(__VA_ARGS__);         \
    if (!name##_or_none) GTEST_SKIP() << "ptrace is refused"; \
    const bill& name = *name##_or_none

constexpr int reads = 200;
constexpr std::size_t chunk_bytes = 64;

// A connection that is watched since its reader has waited once; all of the data is ready.
std::pair<unix_stream, unix_stream> with_ready_data() {
    auto [writer, reader] = unix_stream::pair().value();
    std::string b(chunk_bytes, 0);
    fiber first([&w = writer] { must(!w.write_all(bytes_of("x")).error()); });
    must(reader.read(room(b)).value_or(0) == 1);
    first.join();
    must(!writer.write_all(bytes_of(std::string(chunk_bytes * reads, 'x'))).error());
    weft::this_fiber::sleep_for(1ms);  // the loop is notified
    return {std::move(writer), std::move(reader)};
}

TEST_F(system_calls, for_ready_data_are_the_reads_only) {
    BILL_OR_SKIP(b, [] {
        auto [writer, reader] = with_ready_data();
        std::string s(chunk_bytes, 0);
        mark();
        for (int i = 0; i < reads; ++i) must(reader.read(room(s)).value_or(0) == chunk_bytes);
        mark();
    });
    EXPECT_EQ(b.receives, reads);
    EXPECT_EQ(b.sends + b.waits + b.controls + b.in_vain + b.others, 0);
}

TEST_F(system_calls, of_a_task_are_those_of_a_fiber) {
    BILL_OR_SKIP(b, [] {
        auto [writer, reader] = with_ready_data();
        auto read = [](unix_stream& from, int count) -> weft::task<bool> {
            std::string s(chunk_bytes, 0);
            bool well = true;
            for (int i = 0; i < count; ++i)
                well = well && (co_await from.async_read(room(s))).value_or(0) == chunk_bytes;
            co_return well;
        };
        must(weft::await(read(reader, 0)));  // the first of its size takes memory from the system
        mark();
        const bool well = weft::await(read(reader, reads));
        mark();
        must(well);
    });
    EXPECT_EQ(b.receives, reads);
    EXPECT_EQ(b.sends + b.waits + b.controls + b.in_vain + b.others, 0);
}

// A read that returns less than the buffer holds has read everything: no second read checks for
// more.
TEST_F(system_calls, for_a_wait_include_no_futile_read) {
    BILL_OR_SKIP(b, [] {
        auto [writer, reader] = with_ready_data();
        std::string s(chunk_bytes * reads + 1, 0);
        must(reader.read(room(s)).value_or(0) == chunk_bytes * reads);
        mark();
        for (int i = 0; i < reads; ++i) {
            must(writer.write(bytes_of("less")).value_or(0) == 4);
            must(reader.read(room(s)).value_or(0) == 4);
        }
        mark();
    });
    EXPECT_EQ(b.receives, reads);
    EXPECT_EQ(b.sends, reads);
    EXPECT_LE(b.waits, reads);
    EXPECT_EQ(b.controls + b.in_vain + b.others, 0);
}

TEST_F(system_calls, for_an_echo_are_two_per_request_and_a_share_of_the_waits) {
    constexpr int connections = 32, rounds = 20;
    BILL_OR_SKIP(b, [] {
        std::vector<connection> all;
        for (int i = 0; i < connections; ++i) all.push_back(connected());
        std::vector<fiber> servers;
        for (connection& c : all)
            servers.emplace_back([&s = c.server] {
                std::string b(512, 0);
                while (const auto n = s.read(room(b)).value_or(0))
                    if (!s.write_all(bytes_of(b).first(n))) return;
            });
        const auto ask = [&](int times) {
            std::vector<fiber> clients;
            for (connection& c : all)
                clients.emplace_back([&s = c.client, times] {
                    std::string b(512, 0);
                    for (int i = 0; i < times; ++i) {
                        must(!s.write_all(bytes_of(b).first(chunk_bytes)).error());
                        must(s.read(room(b)).value_or(0) == chunk_bytes);
                    }
                });
            for (fiber& f : clients) f.join();
        };
        ask(1);  // from now on all are watched
        mark();
        ask(rounds);
        mark();
        for (connection& c : all) c.client.close();
        for (fiber& f : servers) f.join();
    });
    constexpr int requests = connections * rounds;
    // The clients are here as well.
    EXPECT_EQ(b.receives, 2 * requests);
    EXPECT_EQ(b.sends, 2 * requests);
    EXPECT_EQ(b.controls + b.in_vain, 0);
    EXPECT_LE(b.waits, requests / 4);
}

}  // namespace
