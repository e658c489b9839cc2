// loopback_port: a port of 127.0.0.1 that the system chose, and assigns to no other socket
// meanwhile.
//
// Design: a socket that is bound and does not listen reserves the port. A server that sets
// SO_REUSEADDR, as every server that can be started twice does, binds and listens there
// nevertheless; a socket that asks for any port never gets this one.
//
//   const weft::testing::loopback_port port;
//   ... "--port", port.text() ...
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "test/clients/sockets.hpp"

namespace weft::testing {

class loopback_port {
public:
    loopback_port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const int on = 1;
        EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
        sockaddr_in a = address();
        socklen_t bytes = sizeof a;
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&a), bytes), 0);
        EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &bytes), 0);
        number_ = ::ntohs(a.sin_port);
    }
    loopback_port(const loopback_port&) = delete;
    loopback_port& operator=(const loopback_port&) = delete;
    ~loopback_port() { ::close(fd_); }

    int number() const noexcept { return number_; }
    std::string text() const { return std::to_string(number_); }

    // A client is connected, and never answered.
    void be_silent() { EXPECT_EQ(::listen(fd_, 100), 0); }

    // A descriptor connected to the server there; -1 if there is none.
    descriptor connected() const {
        descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in a = address();
        if (::connect(client.number(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0)
            return client;
        return descriptor(-1);
    }
    bool is_served() const { return connected().number() >= 0; }

private:
    sockaddr_in address() const noexcept {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_port = ::htons(static_cast<in_port_t>(number_));
        a.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        return a;
    }

    int fd_;
    int number_ = 0;
};

}  // namespace weft::testing
