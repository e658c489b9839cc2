// event_fd: an eventfd by which a driver is notified of wakes: readable from a notification until
// the driver resets it.
//
// A wake that the system refuses to take would never be delivered: see refusals.hpp.
#pragma once

namespace weft::detail {

// Nonblocking, and close-on-exec; `notified`: readable at once. -1 with errno.
[[nodiscard]] int open_event_fd(bool notified) noexcept;
void notify_event_fd(int number) noexcept;
// For an eventfd that is readable, and that no other thread reads.
void drain_event_fd(int number) noexcept;
// For an eventfd that may be readable.
void clear_event_fd(int number) noexcept;

}  // namespace weft::detail
