// driver: what a loop sleeps on, and the clock that it uses: its only access to the system.
//
// Design: a loop that has nothing to run asks its driver to wait until the earliest deadline; an
// event from outside (a post of another thread, a socket) ends that wait. The driver of a loop
// without sockets is one word (driver_futex.hpp); the driver of a test is a clock that jumps.
//
// Limits: a driver is that of one loop. wake() and now() are for any thread, everything else is for
// the loop's.
//
//   weft::loop l(std::make_unique<weft::driver_futex>());
#pragma once

#include "weft/base/clock.hpp"

namespace weft {

class io_driver;  // io/io_driver.hpp

class driver {
public:
    // `io` is the driver itself, if it handles descriptors.
    explicit driver(io_driver* io = nullptr) noexcept : io_(io) {}
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;
    virtual ~driver() = default;

    // Sleeps until `until`, or until wake() is called; a wake() from before the call counts too.
    // `never` waits for wake(). False where nothing can ever end the wait: then it returns at once.
    // The loop's thread.
    [[nodiscard]] virtual bool wait(time_point until) noexcept = 0;

    // The work of a wait without the sleep, for a loop that is busy: delivers what has happened
    // outside.
    virtual void poll() noexcept {}

    // Submits all that was requested from the system so far: before another thread sleeps on
    // native_handle().
    virtual void flush() noexcept {}

    // Ends the present wait, or the next one. Any thread; costs at most a system call where the
    // loop sleeps, or once native_handle() was called.
    virtual void wake() noexcept = 0;

    // Wakes from before this call end no wait: the caller checks next what was posted. The
    // descriptor is no longer readable, and the next wake makes it readable again. The loop's
    // thread.
    virtual void clear_wake() noexcept {}

    virtual time_point now() const noexcept = 0;  // any thread

    // Whether a wait takes the time that it is given. False for a clock that jumps: a loop then
    // does nothing of its own accord between two deadlines of its flows.
    virtual bool keeps_real_time() const noexcept { return true; }

    // A descriptor that is readable from a wake() until the next wait: for a foreign loop. Created
    // by the first call; -1 where there is none.
    virtual int native_handle() noexcept = 0;

    // The driver itself, if it handles descriptors.
    io_driver* io() const noexcept { return io_; }
    // Another driver takes its place: a wake of this one, also one from before this call, wakes the
    // other from now on. False: this one cannot be replaced. Null only asks. The loop's thread.
    [[nodiscard]] virtual bool give_way(driver*) noexcept { return false; }

private:
    io_driver* const io_;
};

}  // namespace weft
