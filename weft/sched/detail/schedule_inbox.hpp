// schedule_inbox: a queue of work that any thread posts and any worker of a pool may start, FIFO.
//
// Design: a queue under a spin lock, with its length beside it, so that a worker can check without
// the lock whether there is work. The check orders nothing: a worker that must not miss earlier
// work has the fences of an idle_set around it (parking.hpp).
//
// Model: test/model/parking_test.cpp
#pragma once

#include <cstddef>
#include <mutex>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/base/forward_queue.hpp"
#include "weft/wait/runnable.hpp"

namespace weft::detail {

class schedule_inbox {
public:
    void push(runnable& r) noexcept {
        const std::lock_guard held(lock_);
        queue_.push_back(r);
        count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    // Takes the first; its handle is null if there is none.
    ready_turn pop() noexcept {
        if (empty()) return {};
        const std::lock_guard held(lock_);
        const runnable* const r = queue_.pop_front();
        if (r == nullptr) return {};
        count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        return {r->handle, r->of};
    }
    bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

private:
    spin_lock lock_;  // guards the queue
    forward_queue<runnable> queue_;
    // Orders: relaxed, the lock orders the writers; for the readers see above.
    atomic<std::size_t> count_{0};
};

}  // namespace weft::detail
