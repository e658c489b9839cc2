#include "weft/hook/detail/transfer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>

#include "test/io/drivers.hpp"
#include "weft/hook/detail/calls.hpp"

namespace {

using namespace weft;

// Of the calls of the system that send and receive.
std::atomic<int> tries{0};

ssize_t counted_sendto(int fd, const void* from, size_t bytes, int flags, const sockaddr* to,
                       socklen_t room) {
    ++tries;
    return ::syscall(SYS_sendto, fd, from, bytes, flags, to, room);
}
ssize_t counted_sendmsg(int fd, const msghdr* m, int flags) {
    ++tries;
    return ::syscall(SYS_sendmsg, fd, m, flags);
}
ssize_t counted_recvmsg(int fd, msghdr* m, int flags) {
    ++tries;
    return ::syscall(SYS_recvmsg, fd, m, flags);
}

// Replaces the originals while it exists.
class counted_calls {
public:
    counted_calls() {
        hook::real::sendto_pointer.store(counted_sendto, std::memory_order_relaxed);
        hook::real::sendmsg_pointer.store(counted_sendmsg, std::memory_order_relaxed);
        hook::real::recvmsg_pointer.store(counted_recvmsg, std::memory_order_relaxed);
    }
    ~counted_calls() {
        hook::real::sendto_pointer.store(sendto_, std::memory_order_relaxed);
        hook::real::sendmsg_pointer.store(sendmsg_, std::memory_order_relaxed);
        hook::real::recvmsg_pointer.store(recvmsg_, std::memory_order_relaxed);
    }

private:
    const hook::real::sendto_type sendto_ =
        hook::real::sendto_pointer.load(std::memory_order_relaxed);
    const hook::real::sendmsg_type sendmsg_ =
        hook::real::sendmsg_pointer.load(std::memory_order_relaxed);
    const hook::real::recvmsg_type recvmsg_ =
        hook::real::recvmsg_pointer.load(std::memory_order_relaxed);
};

class a_socket_that_is_not_to_wait : public weft::testing::on_each_driver {
protected:
    // How many tries such a call is, which moves a part.
    int tries_of(const std::function<ssize_t(int fd, const char* much, std::size_t bytes)>& call) {
        int count = -1;
        run([&] {
            int ends[2];
            ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
            ASSERT_EQ(::send(ends[1], "abc", 3, 0), 3);
            const std::string much(4'000'000, 'x');
            {
                const counted_calls counted;
                tries = 0;
                const ssize_t n = call(ends[0], much.data(), much.size());
                count = tries;
                EXPECT_GT(n, 0);
                EXPECT_LT(n, static_cast<ssize_t>(much.size()));
            }
            ::close(ends[0]);
            ::close(ends[1]);
        });
        return count;
    }
};

// As of a thread: by the time of a second one more may fit, or have come.
TEST_P(a_socket_that_is_not_to_wait, is_tried_once) {
    using bytes = const char*;
    EXPECT_EQ(tries_of([](int fd, bytes b, std::size_t n) { return ::send(fd, b, n, 0); }), 1);
    EXPECT_EQ(tries_of([](int fd, bytes b, std::size_t n) { return ::write(fd, b, n); }), 1);
    EXPECT_EQ(tries_of([](int fd, bytes b, std::size_t n) {
                  iovec two[] = {{const_cast<char*>(b), 3}, {const_cast<char*>(b), n - 3}};
                  msghdr m{};
                  m.msg_iov = two;
                  m.msg_iovlen = 2;
                  return ::sendmsg(fd, &m, 0);
              }),
              1);
    EXPECT_EQ(tries_of([](int fd, bytes, std::size_t) {
                  char to[10];
                  return ::recv(fd, to, sizeof to, MSG_WAITALL);
              }),
              1);
}
INSTANTIATE_ON_DRIVERS(a_socket_that_is_not_to_wait);

}  // namespace
