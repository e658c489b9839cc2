#include "session.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace echo {

session::~session() { ::close(fd_); }

void session::start_async_recv(buffer& b) noexcept {
    pending_ = &b;
    state_ = state::receiving;
}

void session::start_async_send(buffer& b) noexcept {
    pending_ = &b;
    sent_bytes_ = 0;
    state_ = state::sending;
}

bool session::complete_io() noexcept {
    const bool finished = state_ == state::receiving ? complete_recv() : complete_send();
    if (finished) {
        pending_ = nullptr;
        state_ = state::idle;
    }
    return finished;
}

bool session::complete_recv() noexcept {
    const ssize_t n = ::recv(fd_, pending_->data, buffer::capacity_bytes, 0);
    if (n < 0) return would_block_or_hung_up();
    if (n == 0) {
        state_ = state::hung_up;
        return false;
    }
    pending_->size_bytes = static_cast<std::size_t>(n);
    return true;
}

bool session::complete_send() noexcept {
    const std::size_t left = pending_->size_bytes - sent_bytes_;
    const ssize_t n = ::send(fd_, pending_->data + sent_bytes_, left, MSG_NOSIGNAL);
    state_ = state::blocked;  // unless all went
    if (n < 0) return would_block_or_hung_up();
    sent_bytes_ += static_cast<std::size_t>(n);
    return sent_bytes_ == pending_->size_bytes;
}

bool session::would_block_or_hung_up() noexcept {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) state_ = state::hung_up;
    return false;
}

}  // namespace echo
