// session: one client of the echo server, and the same interface for every style of coroutine.
//
// A session's body is an endless loop: receive into a buffer, send it back. It never ends by
// itself. When the client hangs up, the reactor destroys the session *while its body is suspended*,
// and what the body has constructed must be destroyed with it.
//
//                        start_async_recv(buf)
//   reactor: resume() ---------------------------> receiving --- bytes came --> resume()
//                        start_async_send(buf)
//   reactor: resume() ---------------------------> sending ----- all sent ----> resume()
//                                                   |   ^
//                                     socket full   v   |  writable
//                                                  blocked
//   receiving, sending, blocked --- the client is gone --> hung_up --> ~session()
//
// Invariants:
//   I1  While an operation is pending its buffer is alive: it belongs to the suspended body.
//   I2  The buffer's bytes are touched only in complete_io(), which runs where they are in place.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "buffer.hpp"

namespace echo {

class session {
public:
    enum class state { idle, receiving, sending, blocked, hung_up };

    explicit session(int fd) noexcept : fd_(fd) {}  // takes the non-blocking socket over
    virtual ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    virtual void resume() = 0;  // runs the body to its next suspension

    // The reactor says that the pending operation can go on. The bytes are moved first and the body
    // resumed when all is done, unless a style knows that its buffer is not in place yet.
    virtual void ready() {
        if (complete_io()) resume();
    }

    state now() const noexcept { return state_; }
    bool suspended() const noexcept { return pending_ != nullptr; }
    int fd() const noexcept { return fd_; }

protected:
    void start_async_recv(buffer& b) noexcept;
    void start_async_send(buffer& b) noexcept;

    // One attempt at the pending operation; true when it is finished. When the client is gone it
    // is never finished, and the state says so.
    bool complete_io() noexcept;

private:
    bool complete_recv() noexcept;
    bool complete_send() noexcept;
    bool would_block_or_hung_up() noexcept;

    const int fd_;
    state state_ = state::idle;
    buffer* pending_ = nullptr;
    std::size_t sent_bytes_ = 0;
};

using session_maker = std::function<std::unique_ptr<session>(int fd)>;

}  // namespace echo
