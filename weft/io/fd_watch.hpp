// fd_watch: waits for a descriptor that belongs to other code: a client library's, a timerfd, a
// device.
//
// Design: a watched descriptor is registered once with the driver of the waiter, and deregistered
// by the destructor, before the owner of the descriptor closes it.
//
// Limits: the descriptor may be a blocking one. A file that is always ready (a regular file) is
// reported ready at once; a wait of it for urgent data alone ends with operation_not_permitted, or,
// over the driver on poll(), at its time limit. A descriptor that weft has opened itself
// (tcp_stream::native_handle) may be waited for too; the stream still owns it. A descriptor that is
// not open gives bad_file_descriptor. One wait asks for read or for write, not for both.
//
//   weft::fd_watch w(PQsocket(connection));
//   while (PQisBusy(connection)) {
//       if (!w.wait(weft::fd_events::read)) break;
//       PQconsumeInput(connection);
//   }
//
//   auto r = weft::wait_fd(fd, weft::fd_events::write, 250ms);   // once: two system calls more
#pragma once

#include <poll.h>

#include <source_location>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// What to wait for, and what has happened; as poll(2) has it.
enum class fd_events : short {
    none = 0,
    read = POLLIN,
    write = POLLOUT,
    urgent = POLLPRI,
    error = POLLERR,    // only reported
    hang_up = POLLHUP,  // only reported
};
constexpr fd_events operator|(fd_events a, fd_events b) noexcept {
    return static_cast<fd_events>(static_cast<short>(a) | static_cast<short>(b));
}
constexpr bool has(fd_events all, fd_events some) noexcept {
    return (static_cast<short>(all) & static_cast<short>(some)) != 0;
}

namespace detail {
class fd_event;
}

class fd_watch {
public:
    class wait_operation;

    fd_watch() noexcept = default;  // of nothing
    explicit fd_watch(int number) noexcept;
    fd_watch(fd_watch&& other) noexcept
        : ref_(std::exchange(other.ref_, {})),
          borrowed_(std::exchange(other.borrowed_, false)),
          error_(other.error_) {}
    fd_watch& operator=(fd_watch&& other) noexcept;
    // Deregisters the descriptor, which stays open.
    ~fd_watch() { release(); }

    // Which of `events` have happened, or an error or a hang-up. One wait may not ask for both read
    // and write: invalid_argument. Callers may wait concurrently.
    [[nodiscard]] wait_operation async_wait(fd_events events, time_limit limit = {}) const noexcept;
    result<fd_events> wait(fd_events events, time_limit limit = {},
                           std::source_location caller = std::source_location::current()) const;

private:
    friend class detail::fd_event;

    void release() noexcept;
    // The request that waits for `events`, and why there is none.
    detail::io_request request(fd_events events, std::error_code& error) const noexcept;

    detail::descriptor_ref ref_;
    bool borrowed_ = false;
    std::error_code error_;
};

class fd_watch::wait_operation final : public detail::io_operation {
public:
    wait_operation(const fd_watch& of, fd_events events, time_limit limit) noexcept;
    bool ready() noexcept;
    result<fd_events> take(const waiter* w, wait_status how) const noexcept;

private:
    std::error_code error_;
};

result<fd_events> wait_fd(int number, fd_events events, time_limit limit = {},
                          std::source_location caller = std::source_location::current());

}  // namespace weft
