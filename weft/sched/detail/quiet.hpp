// quiet: how a thread waits until all workers of a pool sleep, and nothing is left for them.
//
// Design: the waiter announces itself first and then checks; a worker first announces that it is
// idle (idle_set.hpp) and then checks for a waiter. Between the two steps of each is a heavy fence,
// so that one of them sees the other. All are idle for good if a second check of them, after one of
// the work that is left, finds the same word.
//
//      worker                                   waiter
//
//      announce(i)                              waiting + 1
//      there is a waiter, and all are idle:     until all are idle, nothing is left, and all are
//          notify                               idle still: sleep
//
// Model: test/model/quiet_test.cpp
#pragma once

#include <mutex>

#include "weft/base/clock.hpp"
#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/thread_mutex.hpp"
#include "weft/queue/detail/idle_set.hpp"

namespace weft::detail {

class quiet {
public:
    explicit quiet(idle_set& all) noexcept : all_(all) {}
    quiet(const quiet&) = delete;
    quiet& operator=(const quiet&) = delete;

    // Called by a worker that has announced itself and is about to sleep.
    void worker_rests() noexcept {
        // Relaxed: announce() has a heavy fence, which pairs with that of wait_until().
        if (waiting_.load(std::memory_order_relaxed) == 0 || !all_.all_idle(all_.look())) return;
        const std::lock_guard held(lock_);
        changed_.notify_all();
    }

    // `nothing_left` reads what the workers wrote before they announced themselves.
    template <class Look>
    bool is_so(Look nothing_left) noexcept {
        const idle_set::snapshot before = all_.look();
        return all_.all_idle(before) && nothing_left() && all_.is_still(before);
    }
    // False: the time has come, and it is not so. Not called by a worker.
    template <class Look>
    bool wait_until(time_point until, Look nothing_left) {
        // Relaxed: the fence that follows orders it.
        waiting_.fetch_add(1, std::memory_order_relaxed);
        asymmetric_fence::heavy();  // pairs with that of announce(), see worker_rests()
        bool is;
        {
            std::unique_lock held(lock_);
            while (!(is = is_so(nothing_left))) {
                if (until == never)
                    changed_.wait(held);
                else if (!changed_.wait_until(held, until))
                    break;
            }
        }
        waiting_.fetch_sub(1, std::memory_order_relaxed);  // a notification too many does no harm
        return is;
    }

private:
    idle_set& all_;
    thread_mutex lock_;
    thread_condition changed_;
    atomic<unsigned> waiting_{0};
};

}  // namespace weft::detail
