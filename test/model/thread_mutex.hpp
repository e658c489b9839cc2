// The mutex and the condition variable of the checker, which weft::detail::thread_mutex and
// thread_condition are in its builds. Each use of them is an operation, so it is a point at which
// another thread may run.
//
// A notification goes to the thread that has waited longest, and there is no spurious wake. A wait
// with a deadline ends when a test's thread calls let_time_pass(), and so does every such wait that
// starts later in the execution. A thread that is notified at the same time may report either.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "model/model.hpp"

namespace model {

class thread_mutex {
public:
    void lock() {
        // Acquire: pairs with unlock().
        while (taken_.exchange(true, std::memory_order_acquire))
            wait_until([this] { return !taken_.load(std::memory_order_relaxed); });
    }
    bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
    void unlock() { taken_.store(false, std::memory_order_release); }

private:
    atomic<bool> taken_{false};
};

// Whether the deadlines have come; the body of a test resets it.
inline atomic<bool> time_has_passed{false};
inline void let_time_pass() { time_has_passed.store(true, std::memory_order_relaxed); }

class thread_condition {
public:
    void wait(std::unique_lock<thread_mutex>& held) { static_cast<void>(sleep(held, false)); }
    template <class Time>
    bool wait_until(std::unique_lock<thread_mutex>& held, Time) {
        return sleep(held, true);
    }
    void notify_one() {
        touch();
        if (!sleepers_.empty()) notify_first();
        touch();  // a notification ends with its call
    }
    void notify_all() {
        touch();
        while (!sleepers_.empty()) notify_first();
        touch();
    }

private:
    struct sleeper {
        bool notified = false;  // plain: it orders nothing, and is set within an operation
    };

    // Whether it was notified before the time passed.
    bool sleep(std::unique_lock<thread_mutex>& held, bool has_deadline) {
        sleeper me;
        touch();
        sleepers_.push_back(&me);
        held.unlock();
        model::wait_until([&] {
            return me.notified || (has_deadline && time_has_passed.load(std::memory_order_relaxed));
        });
        // It does not sleep any more, whatever it reports.
        std::erase(sleepers_, &me);
        const bool late = has_deadline && time_has_passed.load(std::memory_order_relaxed);
        held.lock();
        return !late;
    }
    void notify_first() {
        sleeper& s = *sleepers_.front();
        sleepers_.erase(sleepers_.begin());
        s.notified = true;
    }
    void touch() { word_.fetch_add(1, std::memory_order_relaxed); }

    std::vector<sleeper*> sleepers_;
    atomic<unsigned> word_{0};
};

}  // namespace model
