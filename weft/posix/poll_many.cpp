#include "weft/posix/detail/poll_many.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <span>

#include "weft/base/errno.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/fd_watch.hpp"
#include "weft/wait/sleep.hpp"

namespace weft::detail {
namespace {

constexpr short reading = POLLIN | POLLRDNORM | POLLPRI | POLLRDBAND | POLLRDHUP;
constexpr short writing = POLLOUT | POLLWRNORM | POLLWRBAND;

std::uint32_t epoll_events(short events) noexcept {
    return static_cast<std::uint16_t>(events) & ~std::uint32_t{POLLNVAL};
}

// A set of the system's (epoll) with all of the descriptors.
class fd_set_of_epoll {
public:
    explicit fd_set_of_epoll(std::span<const pollfd> fds) noexcept
        : number_(::epoll_create1(EPOLL_CLOEXEC)) {
        for (const pollfd& p : fds)
            if (p.fd >= 0 && number_ >= 0 && !add(p.fd, fds)) return;
    }
    fd_set_of_epoll(const fd_set_of_epoll&) = delete;
    fd_set_of_epoll& operator=(const fd_set_of_epoll&) = delete;
    ~fd_set_of_epoll() {
        if (number_ >= 0) ::close(number_);
    }
    int number() const noexcept { return number_; }  // -1: no descriptor, and errno says why

private:
    // Adds all events that any entry wants of fd, which may be in several entries.
    bool add(int fd, std::span<const pollfd> fds) noexcept {
        epoll_event e{};
        for (const pollfd& p : fds)
            if (p.fd == fd) e.events |= epoll_events(p.events);
        if (::epoll_ctl(number_, EPOLL_CTL_ADD, fd, &e) == 0 || get_errno() == EEXIST) return true;
        const int why = get_errno();
        // Always ready: poll would have reported that.
        if (why == EPERM || why == EBADF) return true;
        ::close(number_);
        number_ = -1;
        set_errno(why);
        return false;
    }

    int number_;
};

// 0: query poll again, or the deadline has come. Otherwise an error number.
int wait_for(int fd, fd_events events, time_point until) {
    const auto came = wait_fd(fd, events, until);
    if (came || came.error() == std::errc::timed_out) return 0;
    this_fiber::throw_if_stopped();
    // Closed meanwhile, or ended by a stop that this wait cannot report: poll reports which.
    if (came.error().category() != std::system_category() &&
        came.error().category() != std::generic_category())
        return 0;
    return came.error().value();
}

int wait_for_any(std::span<const pollfd> fds, time_point until) {
    if (fds.size() == 1 && (fds[0].events & (reading | writing)) != 0) {
        const bool reads = (fds[0].events & reading) != 0;
        const bool writes = (fds[0].events & writing) != 0;
        const bool urgent = (fds[0].events & (POLLPRI | POLLRDBAND | POLLRDHUP)) != 0;
        if (reads != writes && !urgent)
            return wait_for(fds[0].fd, reads ? fd_events::read : fd_events::write, until);
    }
    const fd_set_of_epoll set(fds);
    return set.number() < 0 ? get_errno() : wait_for(set.number(), fd_events::read, until);
}

bool names_any(std::span<const pollfd> fds) noexcept {
    for (const pollfd& p : fds)
        if (p.fd >= 0) return true;
    return false;
}

}  // namespace

time_point poll_deadline(int timeout_ms) noexcept {
    return timeout_ms < 0 ? never : after(now(), std::chrono::milliseconds(timeout_ms));
}

int poll_many(pollfd* fds, nfds_t count, time_point until) {
    const std::span all(fds, count);
    if (!names_any(all)) {
        for (pollfd& p : all) p.revents = 0;
        await(sleep_until(until));
        return 0;
    }
    for (;;) {
        const int ready = ::poll(fds, count, 0);
        if (ready != 0 || now() >= until) return ready;
        if (const int error = wait_for_any(all, until); error != 0) return fail_with(error);
    }
}

}  // namespace weft::detail
