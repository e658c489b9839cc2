// crew: the pool of a strand's test: threads of the test take what is launched, first in first out,
// and run it, and one more thread is the clock. weft::pool is this in the checker's builds
// (crew.cpp, which replaces weft/sched/pool.cpp).
//
//   model::crew c(1);                                     // so many threads launch
//   weft::pool p;                                         // is the crew
//   run.thread("launches", [&] { ...; c.leave(); });
//   run.thread("worker", [&] { c.work(); });              // until all have left, and nothing is
//   left
#pragma once

#include "model/small_loop.hpp"
#include "weft/sched/pool.hpp"

namespace model {

class crew {
public:
    explicit crew(int launchers) : clock(launchers), launchers_(launchers) { present = this; }

    void work() {
        for (;;) {
            wait_until([this] { return is_ready() || is_over(); });
            if (!turn() && is_over()) return;
        }
    }
    void leave() {
        left_.fetch_add(1, std::memory_order_release);
        clock.leave();
    }

    void schedule(weft::runnable& r) {
        launched_.push_back(r);  // in one step with the next: the threads are one to the system
        state_.fetch_add(one_ready + one_under_way, std::memory_order_release);
    }
    // After all threads: what the clock has launched since, and what that brings about.
    void drain() {
        do clock.drain();
        while (turn());
    }

    small_loop clock;
    static inline crew* present = nullptr;

private:
    static constexpr unsigned one_ready = 1;
    static constexpr unsigned one_under_way = 1u << 16;  // launched, and its turn has not ended

    bool turn() {
        unsigned s = state_.load(std::memory_order_relaxed);
        do {
            if (s % one_under_way == 0) return false;
        } while (!state_.compare_exchange_strong(s, s - one_ready, std::memory_order_acq_rel,
                                                 std::memory_order_relaxed));
        launched_.pop_front()->handle.resume();
        state_.fetch_sub(one_under_way, std::memory_order_release);
        return true;
    }
    bool is_ready() const { return state_.load(std::memory_order_relaxed) % one_under_way != 0; }
    bool is_over() const {
        return left_.load(std::memory_order_acquire) == launchers_ &&
               state_.load(std::memory_order_acquire) == 0;
    }

    const int launchers_;
    weft::forward_queue<weft::runnable> launched_;
    weft::atomic<unsigned> state_{0};
    weft::atomic<int> left_{0};
};

}  // namespace model
