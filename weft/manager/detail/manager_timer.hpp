// manager_timer: calls a manager at its earliest deadline, by an executor's timers.
//
// Design: one timer for all tasks, armed for the earliest deadline; later deadlines do not touch
// it. An earlier deadline that is set on another thread posts a message. A deadline that was taken
// back lets the timer fire without work, once.
//
// It is on the heap, and deletes itself on the executor's thread after its owner has released it.
//
// Model: test/model/manager_timer_test.cpp
#pragma once

#include "weft/base/detail/spin_lock.hpp"
#include "weft/wait/executor.hpp"

namespace weft::detail {

class manager_timer : timer_node, frame {
public:
    // Does what is due, and returns the time of the next call; `never`: none until need() asks for
    // one.
    using work = time_point (*)(void* owner) noexcept;

    manager_timer(executor& on, work w, void* owner) noexcept;
    manager_timer(const manager_timer&) = delete;
    manager_timer& operator=(const manager_timer&) = delete;

    // There is a deadline at t. Any thread.
    void need(time_point t) noexcept;
    // There is no deadline any more. Any thread.
    void rest() noexcept;
    // Releases the timer: no call starts any more, and this waits for a running call to end. Any
    // thread, but not from within a call.
    void release() noexcept;

    time_point now() const noexcept { return on_.now(); }

private:
    ~manager_timer() = default;

    static void receive(frame* f) noexcept;
    static void on_time(timer_node& n) noexcept;
    void call() noexcept;
    bool want(time_point t) noexcept;
    void follow() noexcept;

    executor& on_;
    const work work_;
    runnable message_;
    spin_lock lock_;             // guards what follows
    void* owner_;                // null: released
    time_point wanted_ = never;  // armed for this, or about to be
    bool posted_ = false;        // the message is on its way
    bool calling_ = false;
};

}  // namespace weft::detail
