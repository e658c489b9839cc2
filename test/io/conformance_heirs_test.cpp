// The laws of a descriptor that another process has as well: by fork, or sent to it.

#include <sys/eventfd.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class inherited : public on_each_way {};
INSTANTIATE_ON_WAYS(inherited);

// As a child has it that was forked, or a process that it was sent to.
TEST_P(inherited, closing_a_connection_keeps_its_duplicate_usable) {
    auto [s, far] = half_of_tcp();
    const plain_fd heir(::dup(s.native_handle()));
    std::error_code error;
    crew reader(way(), [&, &s = s](auto wait) -> task<> {
        std::string b(8, 0);
        const auto n = co_await wait(s.async_read(room(b)));
        error = n.error();
    });
    reader.asleep();
    s.close();
    reader.join();
    EXPECT_EQ(error, errc::closed);
    send_plainly(far, "1");
    EXPECT_TRUE(is_told(heir));
    EXPECT_EQ(read_plainly(heir, 1), "1");
    send_plainly(heir, "2");
    EXPECT_EQ(read_plainly(far, 1), "2");
}

// Two descriptors of one file, on one loop.
TEST_P(inherited, closing_a_connection_keeps_waits_on_its_duplicate) {
    auto [s, far] = half_of_tcp();
    tcp_stream heir = tcp_stream::adopt(::dup(s.native_handle())).value();
    std::atomic<int> begun = 0;
    std::atomic<int> ended = 0;
    std::error_code errors[2];
    crew readers(way(), 2, [&, &s = s](auto wait) -> task<> {
        const int i = begun++;
        std::string b(8, 0);
        const auto n = co_await wait((i == 0 ? s : heir).async_read(room(b)));
        if (!n) errors[i] = n.error();
        ++ended;
    });
    readers.asleep();
    s.close();
    while (ended == 0) std::this_thread::yield();
    send_plainly(far, "1");
    readers.join();
    EXPECT_EQ(errors[0], errc::closed);
    EXPECT_FALSE(errors[1]) << errors[1].message();
}

TEST_P(inherited, a_forked_child_keeps_its_connection) {
    auto [s, far] = half_of_tcp();
    const plain_fd go(::eventfd(0, EFD_CLOEXEC));
    const int number = s.native_handle();
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::eventfd_t n;
        char c = 0;
        const bool well = ::eventfd_read(go, &n) == 0 && is_told(number) &&
                          ::read(number, &c, 1) == 1 && ::write(number, &c, 1) == 1;
        ::_exit(well ? 0 : 1);
    }
    std::error_code error;
    crew reader(way(), [&, &s = s](auto wait) -> task<> {
        std::string b(8, 0);
        const auto n = co_await wait(s.async_read(room(b)));
        error = n.error();
    });
    reader.asleep();
    s.close();
    reader.join();
    EXPECT_EQ(error, errc::closed);
    send_plainly(far, "1");
    EXPECT_EQ(::eventfd_write(go, 1), 0);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(read_plainly(far, 1), "1");
}

template <class Listener>
void expect_heir_listens(const way& w, Listener l) {
    const endpoint to = l.local_endpoint();
    const plain_fd heir(::dup(l.native_handle()));
    std::error_code error;
    crew server(w, [&](auto wait) -> task<> {
        const auto s = co_await wait(l.async_accept());
        error = s.error();
    });
    server.asleep();
    l.close();
    server.join();
    EXPECT_EQ(error, errc::closed);
    const plain_fd peer(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int n = ::connect(peer, to.data(), to.size());
    EXPECT_TRUE(n == 0 || errno == EINPROGRESS) << std::strerror(errno);
    EXPECT_TRUE(is_told(heir));
    ::fcntl(heir, F_SETFL, O_NONBLOCK);
    const plain_fd served(::accept(heir, nullptr, nullptr));
    EXPECT_GE(served, 0) << std::strerror(errno);
}

TEST_P(inherited, closing_a_listener_keeps_its_duplicate_listening) {
    expect_heir_listens(way(), any_listener());
    expect_heir_listens(way(), unix_listener::bind(local_name()).value());
    expect_heir_listens(way(), tcp_listener::bind("127.0.0.1:0", {.multishot = true}).value());
}

}  // namespace
}  // namespace weft::testing
