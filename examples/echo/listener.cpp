#include "listener.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "options.hpp"

namespace echo {

namespace {

[[noreturn]] void refuse(std::uint16_t port, int error) {
    const std::string where = "port " + std::to_string(port);
    if (error == EADDRINUSE) throw bad_input(where + " is already in use");
    if (error == EACCES) throw bad_input("no permission to listen on " + where);
    throw bad_input("cannot listen on " + where + ": " + std::strerror(error));
}

}  // namespace

listener::listener(std::uint16_t port) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) refuse(port, errno);
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // not hindered by TIME_WAIT

    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    if (::bind(fd_, generic, length) < 0 || ::listen(fd_, SOMAXCONN) < 0 ||
        ::getsockname(fd_, generic, &length) < 0) {
        const int error = errno;
        close();
        refuse(port, error);
    }
    port_ = ntohs(address.sin_port);
}

void listener::close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

}  // namespace echo
