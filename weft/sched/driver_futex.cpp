#include "weft/sched/driver_futex.hpp"

#include <unistd.h>

#include <mutex>
#include <utility>

#include "weft/base/detail/event_fd.hpp"

namespace weft {

driver_futex::~driver_futex() {
    if (event_fd_ >= 0) ::close(event_fd_);
}

bool driver_futex::wait(time_point until) noexcept {
    std::unique_lock held(lock_);
    asleep_ = true;
    while (!wake_) {
        if (until == never) {
            woken_.wait(held);
        } else if (steady_now() >= until || !woken_.wait_until(held, until)) {
            break;
        }
    }
    asleep_ = false;
    clear();
    return true;
}

void driver_futex::clear_wake() noexcept {
    const std::lock_guard held(lock_);
    clear();
}

void driver_futex::clear() noexcept {
    if (std::exchange(wake_, false) && event_fd_ >= 0) detail::clear_event_fd(event_fd_);
}

void driver_futex::wake() noexcept {
    // Notified under the lock: the driver may be gone once its loop has seen the wake.
    const std::lock_guard held(lock_);
    if (instead_ != nullptr) instead_->wake();
    if (wake_) return;
    wake_ = true;
    if (asleep_) woken_.notify_one();
    if (event_fd_ >= 0) detail::notify_event_fd(event_fd_);
}

int driver_futex::native_handle() noexcept {
    const std::lock_guard held(lock_);
    if (event_fd_ < 0) event_fd_ = detail::open_event_fd(wake_);
    return event_fd_;
}

// Refused where a foreign loop watches a descriptor of this driver.
bool driver_futex::give_way(driver* other) noexcept {
    const std::lock_guard held(lock_);
    if (event_fd_ >= 0) return false;
    instead_ = other;
    if (other != nullptr) other->wake();  // for a pending wake; a needless one does no harm
    return true;
}

}  // namespace weft
