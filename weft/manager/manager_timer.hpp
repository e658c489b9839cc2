// manager_timer: calls a manager when its earliest deadline has come, by an executor's timers.
//
// Its one idea: one timer for all tasks, armed for the earliest deadline and not touched by others.
// Who sets an earlier one from another thread posts a message; one that was taken back lets the
// timer go off for nothing, once.
//
// It is on the heap and goes by itself, on the executor's thread, when its owner has let go of it.
//
// Model: test/model/manager_timer_test.cpp
#pragma once

#include "weft/base/spin_lock.hpp"
#include "weft/wait/executor.hpp"

namespace weft::detail {

class manager_timer : timer_node, frame {
public:
    // Does what is due, and returns when it is to be called next; `never`: until need() says so.
    using work = time_point (*)(void* owner) noexcept;

    manager_timer(executor& on, work w, void* owner) noexcept;
    manager_timer(const manager_timer&) = delete;
    manager_timer& operator=(const manager_timer&) = delete;

    // There is a deadline at t. Any thread.
    void need(time_point t) noexcept;
    // There is none any more. Any thread.
    void rest() noexcept;
    // The owner goes: no call begins any more, and one that is under way is waited for. Any thread,
    // but not from a call.
    void let_go() noexcept;

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
    void* owner_;                // null: let go of
    time_point wanted_ = never;  // armed for this, or about to be
    bool posted_ = false;        // the message is on its way
    bool calling_ = false;
};

}  // namespace weft::detail
