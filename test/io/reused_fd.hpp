// reused_fd: another file, to which the system has assigned the descriptor of a file that was
// closed. The new file is one end of a local connection: a mistaken call on it is seen, at it or at
// its other end.
//
//   const int number = s.native_handle();
//   s.close();
//   const weft::testing::reused_fd there(number);
//   EXPECT_FALSE(s.write(b));
//   EXPECT_STREQ(there.touched(), nullptr);
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/clock.hpp"

namespace weft::testing {

class reused_fd {
public:
    // At this descriptor, which is free or about to be; -1: at any.
    explicit reused_fd(int number) {
        const auto end = steady_now() + std::chrono::seconds(2);
        while (number >= 0 && ::fcntl(number, F_GETFD) != -1 && steady_now() < end) ::usleep(100);
        EXPECT_TRUE(number < 0 || ::fcntl(number, F_GETFD) == -1) << "it was not closed";
        int n[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, n), 0);
        number_ = n[0];
        other_ = n[1];
        if (number == other_) {
            std::swap(number_, other_);
        } else if (number >= 0 && number_ != number) {
            EXPECT_EQ(::dup3(number_, number, O_CLOEXEC), number);
            ::close(number_);
            number_ = number;
        }
        EXPECT_EQ(::write(other_, "left alone", lying), lying);
        options_ = all_options();
    }
    reused_fd(const reused_fd&) = delete;
    ~reused_fd() {
        ::close(number_);
        ::close(other_);
    }

    int number() const noexcept { return number_; }
    // What was done to it; null: nothing.
    const char* touched() const noexcept {
        int bytes = 0;
        if (::fcntl(number_, F_GETFD) == -1) return "it is closed";
        ::ioctl(number_, FIONREAD, &bytes);
        if (bytes != lying) return "it was read";
        ::ioctl(other_, FIONREAD, &bytes);
        if (bytes != 0) return "it was written";
        ::pollfd p{other_, POLLIN | POLLRDHUP, 0};
        if (::poll(&p, 1, 0) != 0) return "it was shut down";
        if (all_options() != options_) return "its flags or options were changed";
        return nullptr;
    }

private:
    static constexpr int lying = 10;

    long all_options() const noexcept {
        long all = ::fcntl(number_, F_GETFL);
        for (const int name : {SO_LINGER, SO_RCVBUF, SO_SNDBUF, SO_KEEPALIVE, SO_PASSCRED}) {
            int value[2] = {};
            ::socklen_t bytes = sizeof value;
            ::getsockopt(number_, SOL_SOCKET, name, value, &bytes);
            all = all * 31 + value[0] * 7 + value[1];
        }
        return all;
    }

    int number_;
    int other_;
    long options_;
};

}  // namespace weft::testing
