// spare_threads: the threads that begin_detached_thread() starts in the checker's builds: threads
// of the test that wait to be started (spare_threads.cpp, which replaces
// weft/sched/detached_thread.cpp).
//
//   model::spare_threads spare(1);                                      // so many
//   run.thread("spare", [&] { spare.be(0); });                          // each of them
//   run.thread("user", [&] { ...; spare.leave(); });                    // no more is begun
#pragma once

#include "model/model.hpp"
#include "weft/base/detail/atomic.hpp"

namespace model {

class spare_threads {
public:
    explicit spare_threads(unsigned count) : count_(count) { present = this; }

    void be(unsigned i) {
        wait_until([=, this] { return begun_.load(std::memory_order_acquire) > i || is_over(); });
        if (begun_.load(std::memory_order_acquire) > i) begins_[i].f(begins_[i].of);
    }
    void leave() { over_.store(true, std::memory_order_release); }

    bool begin(void (*f)(void*) noexcept, void* of) {
        const unsigned i = begun_.load(std::memory_order_relaxed);
        if (i == count_) return false;
        begins_[i] = {f, of};  // the caller holds the pool's lock
        begun_.store(i + 1, std::memory_order_release);
        return true;
    }
    unsigned begun_count() const { return begun_.load(std::memory_order_relaxed); }

    static inline spare_threads* present = nullptr;

private:
    struct entry {
        void (*f)(void*) noexcept;
        void* of;
    };
    bool is_over() const { return over_.load(std::memory_order_acquire); }

    const unsigned count_;
    entry begins_[4] = {};
    weft::atomic<unsigned> begun_{0};
    weft::atomic<bool> over_{false};
};

}  // namespace model
