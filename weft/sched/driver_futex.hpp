// driver_futex: a driver for a loop that waits for nothing but its own timers and other threads.
//
// Design: one word under a mutex and a condition variable, which on Linux is a futex; and, once a
// foreign loop has asked for it, an eventfd beside them.
//
// Limits: it waits for no descriptor: a loop in which a flow waits for one gets an io_driver in its
// place.
//
//   weft::loop l(std::make_unique<weft::driver_futex>());      // as weft::loop l;
//
// Model: test/model/driver_futex_test.cpp
#pragma once

#include <memory>

#include "weft/base/detail/thread_mutex.hpp"
#include "weft/sched/driver.hpp"

namespace weft {

class driver_futex final : public driver {
public:
    driver_futex() noexcept = default;
    driver_futex(const driver_futex&) = delete;
    driver_futex& operator=(const driver_futex&) = delete;
    // Closes the descriptor of native_handle().
    ~driver_futex() override;

    [[nodiscard]] bool wait(time_point until) noexcept override;
    void wake() noexcept override;
    void clear_wake() noexcept override;
    time_point now() const noexcept override { return steady_now(); }
    int native_handle() noexcept override;
    [[nodiscard]] bool give_way(driver* other) noexcept override;

private:
    void clear() noexcept;  // under the lock

    detail::thread_mutex lock_;
    detail::thread_condition woken_;
    bool wake_ = false;  // a wake that no wait has seen; event_fd_ is readable meanwhile
    bool asleep_ = false;
    int event_fd_ = -1;
    driver* instead_ = nullptr;  // the driver that replaced it
};

namespace detail {

// The driver of a loop that is given none: a driver_futex. Weak, so that a test program can define
// another and run all its tests with that one (test/support/test_driver.cpp).
std::unique_ptr<driver> driver_of_a_loop();

}  // namespace detail

}  // namespace weft
