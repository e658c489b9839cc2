// driver: what a loop sleeps on, and whose time it goes by: its only hole towards the system.
//
// Its one idea: a loop that has nothing to run asks its driver to wait until the earliest deadline;
// whatever comes from outside (a post of another thread, a socket) ends that wait. The driver of a
// loop without sockets is a word (driver_futex.hpp); that of a test is a clock that jumps.
#pragma once

#include "weft/base/clock.hpp"

namespace weft {

class io_driver;  // io/io_driver.hpp

class driver {
public:
    // `io` is itself, of a driver that knows of descriptors.
    explicit driver(io_driver* io = nullptr) noexcept : io_(io) {}
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;
    virtual ~driver() = default;

    // Sleeps until `until`, or until wake() was called, be it before. `never` waits for wake().
    // False where nothing can ever end the wait: then it returns at once. The loop's thread.
    [[nodiscard]] virtual bool wait(time_point until) noexcept = 0;

    // What a wait would give without sleeping, for who is busy: what has happened outside is told.
    virtual void poll() noexcept {}

    // What was asked of the system so far is on its way: before somebody else sleeps on
    // native_handle().
    virtual void flush() noexcept {}

    // Ends the present wait, or the next one. Any thread; costs a system call at most where
    // somebody sleeps, or once native_handle() was called.
    virtual void wake() noexcept = 0;

    // What has woken it so far ends no wait: who calls looks at what was posted next. The
    // descriptor is not readable then, and the next wake makes it so anew. The loop's thread.
    virtual void forget_wake() noexcept {}

    virtual time_point now() const noexcept = 0;  // any thread

    // Whether a wait takes the time that it says. False of a clock that jumps: a loop then does
    // nothing of its own accord between two deadlines of its flows.
    virtual bool keeps_real_time() const noexcept { return true; }

    // A descriptor that is readable once wake() was called and until the next wait: for a foreign
    // loop. Made at the first call; -1 where there is none.
    virtual int native_handle() noexcept = 0;

    // Itself, if it knows of descriptors.
    io_driver* io() const noexcept { return io_; }
    // Another takes its place: what wakes this one wakes that one from now on, be it before. False:
    // it is not to be replaced. Null: only asks. The loop's thread.
    [[nodiscard]] virtual bool give_way(driver*) noexcept { return false; }

private:
    io_driver* const io_;
};

}  // namespace weft
