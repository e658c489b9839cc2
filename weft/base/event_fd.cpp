#include "weft/base/detail/event_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "weft/base/detail/refusals.hpp"

namespace weft::detail {

int open_event_fd(bool notified) noexcept {
    return ::eventfd(notified ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
}

// Full, which is EAGAIN, it would be after 2^64 of these.
void notify_event_fd(int number) noexcept {
    const std::uint64_t one = 1;
    refusals of_this;
    while (::write(number, &one, sizeof one) < 0) of_this.met("write to an eventfd", errno);
}

void drain_event_fd(int number) noexcept {
    std::uint64_t count;
    refusals of_this;
    while (::read(number, &count, sizeof count) < 0) of_this.met("read of an eventfd", errno);
}

void clear_event_fd(int number) noexcept {
    std::uint64_t count;
    refusals of_this;
    while (::read(number, &count, sizeof count) < 0 && errno != EAGAIN)
        of_this.met("read of an eventfd", errno);
}

}  // namespace weft::detail
