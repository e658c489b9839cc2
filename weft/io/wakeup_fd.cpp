#include "weft/io/detail/wakeup_fd.hpp"

#include <unistd.h>

#include <cerrno>

#include "weft/base/detail/event_fd.hpp"
#include "weft/base/detail/system_error.hpp"

namespace weft::detail {

wakeup_fd::wakeup_fd() : number_(open_event_fd(false)) {
    if (number_ < 0) throw_system_error(errno, "eventfd");
}

wakeup_fd::~wakeup_fd() { ::close(number_); }

void wakeup_fd::always_tell() noexcept {
    // Relaxed: the next step orders it.
    if (always_.exchange(true, std::memory_order_relaxed)) return;
    // Acquire and release: a wake either is in the word by now, or comes after this and sees
    // `always_`.
    if (state_.fetch_or(0, std::memory_order_acq_rel) == woken) tell();
}

void wakeup_fd::tell() noexcept { notify_event_fd(number_); }

void wakeup_fd::drain() noexcept { drain_event_fd(number_); }

void wakeup_fd::clear_fd() noexcept { clear_event_fd(number_); }

}  // namespace weft::detail
