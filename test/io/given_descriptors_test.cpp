#include "weft/io/given_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "test/io/drivers.hpp"
#include "weft/io/tcp_listener.hpp"

namespace {

using namespace std::chrono_literals;
using weft::endpoint;
using weft::environment;
using weft::fiber;
using weft::given_descriptor;
using weft::given_descriptors;
using weft::tcp_listener;

void set_variables(const std::string& pid, const char* count, const char* names) {
    ::setenv("LISTEN_PID", pid.c_str(), 1);
    ::setenv("LISTEN_FDS", count, 1);
    if (names != nullptr) ::setenv("LISTEN_FDNAMES", names, 1);
}

// In a child, which exits with the source line of the condition that did not hold, or with zero.
#define WEFT_MUST(what) \
    if (!(what)) return __LINE__
int in_child(int (*f)()) {
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::_exit(f());
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void open_3_and_4() {
    const int n = ::socket(AF_INET, SOCK_STREAM, 0);
    ::dup2(n, 3);
    ::dup2(n, 4);
    ::fcntl(3, F_SETFD, 0);
    ::fcntl(4, F_SETFD, 0);
}

TEST(given, descriptors_are_returned_with_their_names) {
    EXPECT_EQ(in_child([] {
                  open_3_and_4();
                  set_variables(std::to_string(::getpid()), "2", "http:control");
                  for (const environment e : {environment::keep, environment::unset}) {
                      const auto all = given_descriptors(e).value();
                      WEFT_MUST(all.size() == 2);
                      WEFT_MUST(all[0].number == 3 && all[0].name == "http");
                      WEFT_MUST(all[1].number == 4 && all[1].name == "control");
                      WEFT_MUST(::fcntl(3, F_GETFD) == FD_CLOEXEC);
                      WEFT_MUST(::fcntl(4, F_GETFD) == FD_CLOEXEC);
                  }
                  WEFT_MUST(std::getenv("LISTEN_PID") == nullptr);
                  WEFT_MUST(std::getenv("LISTEN_FDS") == nullptr);
                  WEFT_MUST(std::getenv("LISTEN_FDNAMES") == nullptr);
                  WEFT_MUST(given_descriptors().value().empty());
                  return 0;
              }),
              0);
}

TEST(given, descriptors_without_a_name_are_unknown) {
    EXPECT_EQ(in_child([] {
                  open_3_and_4();
                  set_variables(std::to_string(::getpid()), "2", ":");
                  const auto nameless = given_descriptors().value();
                  for (const given_descriptor& d : nameless) WEFT_MUST(d.name == "unknown");
                  set_variables(std::to_string(::getpid()), "2", "one");
                  const auto all = given_descriptors().value();
                  WEFT_MUST(all[0].name == "one" && all[1].name == "unknown");
                  return 0;
              }),
              0);
}

TEST(given, descriptors_of_another_process_are_left_alone) {
    EXPECT_EQ(in_child([] {
                  open_3_and_4();
                  set_variables(std::to_string(::getppid()), "2", nullptr);
                  WEFT_MUST(given_descriptors().value().empty());
                  WEFT_MUST(::fcntl(3, F_GETFD) == 0);
                  return 0;
              }),
              0);
}

TEST(given, descriptors_that_are_invalid_are_refused) {
    EXPECT_EQ(in_child([] {
                  const std::string own = std::to_string(::getpid());
                  for (const char* count : {"", "x", "-1", "1x", "99999999999999"}) {
                      set_variables(own, count, nullptr);
                      WEFT_MUST(given_descriptors().error() == std::errc::invalid_argument);
                      WEFT_MUST(std::getenv("LISTEN_FDS") == nullptr);
                  }
                  set_variables("somebody", "1", nullptr);
                  WEFT_MUST(given_descriptors().error() == std::errc::invalid_argument);
                  ::close(4);
                  set_variables(own, "1000000000", nullptr);
                  WEFT_MUST(given_descriptors().error() == std::errc::bad_file_descriptor);
                  return 0;
              }),
              0);
}

class passed_listener : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(passed_listener);

// The process that replaces another: it serves by the listener that it was left.
[[noreturn]] void be_the_next(int number, weft::io_kind kind) {
    ::alarm(20);
    weft::loop l(weft::make_io_driver(kind));
    fiber server(
        [&] {
            auto listens = tcp_listener::adopt(number);
            while (auto s = listens->accept())
                if (!s->write_all(weft::bytes_of("n"))) break;
        },
        {.name = "next", .on = l});
    l.run();
    ::_exit(0);
}

// Connect again and again, and record which process serves each connection.
struct clients {
    std::atomic<bool> end{false};
    std::atomic<int> by_old{0};
    std::atomic<int> by_next{0};
    std::atomic<int> refused{0};

    void run(const endpoint& to) {
        while (!end) {
            const int n = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            const ::timeval limit = {10, 0};
            ::setsockopt(n, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
            char c = 0;
            const bool served = ::connect(n, to.data(), to.size()) == 0 && ::read(n, &c, 1) == 1;
            ++(!served ? refused : c == 'o' ? by_old : by_next);
            ::close(n);
        }
    }
};

TEST_P(passed_listener, refuses_no_connection) {
    if (WEFT_TEST_TSAN) GTEST_SKIP() << "a child that is forked among threads starts none there";
    tcp_listener l = weft::testing::any_listener();
    const endpoint to = l.local_endpoint();
    const int number = ::dup(l.native_handle());
    const ::pid_t next = ::fork();
    if (next == 0) be_the_next(number, GetParam());
    ::close(number);
    clients c;
    std::thread connects([&] { c.run(to); });
    run([&] {
        fiber server([&] {
            while (auto s = l.accept())
                if (!s->write_all(weft::bytes_of("o"))) break;
        });
        while ((c.by_old < 20 || c.by_next < 20) && c.refused == 0)
            weft::this_fiber::sleep_for(1ms);  // both serve
        l.close();
        server.join();
        const int so_far = c.by_next;
        while (c.by_next < so_far + 100 && c.refused == 0) weft::this_fiber::sleep_for(1ms);
    });
    c.end = true;
    connects.join();  // before the end of the one that serves it
    ::kill(next, SIGKILL);
    ::waitpid(next, nullptr, 0);
    EXPECT_EQ(c.refused, 0);
    EXPECT_GE(c.by_next, 100) << c.by_old << " by the other";
}

}  // namespace
