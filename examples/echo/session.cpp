#include "session.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <memory>

namespace echo {

bool session::recv(buffer& b) noexcept {
    const int fd = client_.native_handle();
    const ssize_t n = ::recv(fd, b.data, buffer::capacity_bytes, MSG_DONTWAIT);
    if (n <= 0) return not_now(n, weft::fd_events::read);
    b.size_bytes = static_cast<std::size_t>(n);
    return true;
}

bool session::send(const buffer& b) noexcept {
    const int fd = client_.native_handle();
    while (sent_bytes_ < b.size_bytes) {
        const std::size_t left = b.size_bytes - sent_bytes_;
        const ssize_t n = ::send(fd, b.data + sent_bytes_, left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) return not_now(n, weft::fd_events::write);
        sent_bytes_ += static_cast<std::size_t>(n);
    }
    sent_bytes_ = 0;
    awaited_ = weft::fd_events::read;
    return true;
}

// Handles the result n of a call that moved nothing.
bool session::not_now(ssize_t n, weft::fd_events awaited) noexcept {
    const bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
    awaited_ = later ? awaited : weft::fd_events::none;
    return false;
}

weft::task<> drive(std::unique_ptr<session> s) {
    const weft::fd_watch socket(s->client_.native_handle());
    for (;;) {
        s->resume();
        if (s->awaited_ == weft::fd_events::none) co_return;
        if (!co_await socket.async_wait(s->awaited_)) co_return;
    }
}

}  // namespace echo
