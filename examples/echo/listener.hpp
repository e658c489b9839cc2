// listener: a listening socket on 127.0.0.1. Closed by its destructor, or earlier by close().
#pragma once

#include <cstdint>

namespace echo {

class listener {
public:
    explicit listener(std::uint16_t port);  // 0: any free port; throws bad_input
    ~listener() { close(); }
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;

    int fd() const noexcept { return fd_; }
    std::uint16_t port() const noexcept { return port_; }
    void close() noexcept;

private:
    int fd_ = -1;
    std::uint16_t port_ = 0;
};

}  // namespace echo
