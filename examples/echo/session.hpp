// session: one client of the echo server in a primitive style, which knows of no loop and no wait;
// the interface is the same for each of these styles.
//
// The body of a session is an endless loop that tries to receive and tries to send, and suspends
// where the socket is not ready. drive() makes a server of the session: it waits for the socket on
// weft's loop and resumes the body.
//
//   drive:  resume() ------> body: ... recv(): nothing there, yield --.
//              ^                       send(): socket full, yield ----|
//              '---- the socket is ready ---- wait for it <-----------'
//
// The body never ends by itself. When the client has hung up, drive() destroys the session *while
// its body is suspended*, and all that the body has constructed must be destroyed with the session.
// A session on a shared stack needs nothing more: only the body touches the buffer, and the buffer
// is in place whenever the body runs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "buffer.hpp"
#include "weft/io/fd_watch.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/task/task.hpp"

namespace echo {

class session {
public:
    explicit session(weft::tcp_stream client) noexcept : client_(std::move(client)) {}
    virtual ~session() = default;
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    virtual void resume() = 0;  // runs the body to its next suspension

protected:
    // One attempt each; true when some bytes have come, or when all are sent. If false, the body
    // suspends and tries again; if the client is gone, the body suspends too, and never resumes.
    bool recv(buffer& b) noexcept;
    bool send(const buffer& b) noexcept;

private:
    friend weft::task<> drive(std::unique_ptr<session> s);
    bool not_now(ssize_t n, weft::fd_events awaited) noexcept;

    weft::tcp_stream client_;
    weft::fd_events awaited_ = weft::fd_events::read;  // none: the client is gone
    std::size_t sent_bytes_ = 0;
};

// The life of a session: until the client is gone, or the task is destroyed.
weft::task<> drive(std::unique_ptr<session> s);

}  // namespace echo
