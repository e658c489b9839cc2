// descriptor: a file descriptor that the destructor closes; and sockets in pairs.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace weft::testing {

class descriptor {
public:
    explicit descriptor(int number) noexcept : number_(number) {}
    descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    int number() const noexcept { return number_; }

private:
    int number_;
};

// Two ends of one connection.
class socket_pair {
public:
    socket_pair() : socket_pair(pair()) {}
    int end(int which) const noexcept { return (which == 0 ? one_ : other_).number(); }

private:
    struct numbers {
        int of[2];
    };
    static numbers pair() {
        numbers n{{-1, -1}};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, n.of), 0);
        return n;
    }
    explicit socket_pair(numbers n) noexcept : one_(n.of[0]), other_(n.of[1]) {}

    descriptor one_;
    descriptor other_;
};

}  // namespace weft::testing
