// fd_watch: waiting for a descriptor that belongs to other code: a client library's, a timerfd,
// a device.
//
// Its one idea: what is watched is registered once with the driver of the waiter, and let go of by
// the destructor, before its owner closes it.
//
//   weft::fd_watch w(PQsocket(connection));
//   while (PQisBusy(connection)) {
//       if (!w.wait(weft::fd_events::read)) break;
//       PQconsumeInput(connection);
//   }
//
//   auto r = weft::wait_fd(fd, weft::fd_events::write, deadline);   // once: two system calls more
//
// The descriptor need not be one that does not block. What is ready at all times (a regular file)
// is told so at once. A number that weft has opened itself (tcp_stream::native_handle) may be
// waited for as well; it stays the stream's. A number that is not open is bad_file_descriptor.
#pragma once

#include <poll.h>

#include <source_location>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/io/io_operation.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// What to wait for, and what has come; as poll(2) has it.
enum class fd_events : short {
    none = 0,
    read = POLLIN,
    write = POLLOUT,
    urgent = POLLPRI,
    error = POLLERR,    // only as what has come
    hang_up = POLLHUP,  // only as what has come
};
constexpr fd_events operator|(fd_events a, fd_events b) noexcept {
    return static_cast<fd_events>(static_cast<short>(a) | static_cast<short>(b));
}
constexpr bool has(fd_events all, fd_events some) noexcept {
    return (static_cast<short>(all) & static_cast<short>(some)) != 0;
}

class fd_watch {
    using place_t = std::source_location;

public:
    class waiting;

    fd_watch() noexcept = default;  // of nothing
    explicit fd_watch(int number) noexcept;
    fd_watch(fd_watch&& other) noexcept
        : ref_(std::exchange(other.ref_, {})),
          borrowed_(std::exchange(other.borrowed_, false)),
          error_(other.error_) {}
    fd_watch& operator=(fd_watch&& other) noexcept;
    ~fd_watch() { let_go(); }

    // What has come of `events`, or an error or a hang-up. Not both of read and write in one wait
    // may be asked for: invalid_argument. Any number of parties may wait at once.
    [[nodiscard]] waiting async_wait(fd_events events, time_point deadline = never) const noexcept;
    result<fd_events> wait(fd_events events, time_point deadline = never,
                           place_t place = place_t::current()) const;

private:
    void let_go() noexcept;

    descriptor_ref ref_;
    bool borrowed_ = false;
    std::error_code error_;
};

class fd_watch::waiting final : public detail::io_operation {
public:
    waiting(descriptor_ref of, std::error_code error, fd_events events,
            time_point deadline) noexcept;
    bool ready() noexcept;
    result<fd_events> take(const waiter* w, wait_status how) const noexcept;

private:
    std::error_code error_;
};

result<fd_events> wait_fd(int number, fd_events events, time_point deadline = never,
                          std::source_location place = std::source_location::current());

}  // namespace weft
