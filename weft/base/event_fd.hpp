// An eventfd by which a driver is told of wakes: readable once it was told, until it forgets.
//
// A wake that the system refuses to take would be one that never comes: see refusals.hpp.
#pragma once

namespace weft::detail {

// Nonblocking, and closed in what the program executes; `told`: readable at once. -1 with errno.
[[nodiscard]] int open_event_fd(bool told) noexcept;
void tell_event_fd(int number) noexcept;
// Of one that is readable, and that no other thread reads.
void drain_event_fd(int number) noexcept;
// Of one that may be.
void forget_event_fd(int number) noexcept;

}  // namespace weft::detail
