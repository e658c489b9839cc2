// asymmetric_fence: a full fence between two threads of which one comes often and one seldom.
//
// Where each thread stores to a word of its own and then loads the other's, both need a full fence
// in between, or both may miss the other's store.
//
// Design: the kernel puts a fence into every running thread of the process when one of them asks
// (membarrier). The thread that comes seldom pays a system call for both. The thread that comes
// often pays nothing: it only keeps its compiler from changing the order.
//
//      often, the light side                     seldom, the heavy side
//
//      mine = 1                                  theirs = 1
//      fence.light()                             asymmetric_fence::heavy()
//      sees theirs, or ...                       ... sees mine
//
// Two heavy sides order each other, two light ones do not. Each heavy() has one time point: all
// that a light side did before that point is seen after heavy(), and all that the heavy side did
// before heavy() is seen by what the light side does after that point.
//
// Where the kernel has no membarrier, or refuses it, and under ThreadSanitizer, which does not see
// it, both sides are full fences. The choice is made once in a process and holds for all of its
// threads. A light side made by full() has a full fence anywhere, and suits any heavy side.
//
// Limits: heavy() costs 1 us and more, and interrupts the processors on which the process runs. A
// sandbox that takes membarrier away from a process which already has it ends that process.
//
//   weft::detail::asymmetric_fence fence;               // kept by the thread that comes often
//
// Model: test/model/asymmetric_fence_test.cpp
#pragma once

#include <atomic>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

// Whether the kernel has granted it: queried once. In the checker's builds, test/model says.
bool membarrier_works() noexcept;
void membarrier() noexcept;

inline void full_fence() noexcept {
    if constexpr (WEFT_TSAN) {
        // ThreadSanitizer knows no fences. Of two threads that change one word, the later is
        // ordered after the earlier.
        static constinit atomic<unsigned> meeting{0};
        meeting.fetch_add(1, std::memory_order_acq_rel);  // pairs with itself
    } else {
        // Pairs with another, or with membarrier.
        weft::atomic_thread_fence(std::memory_order_seq_cst);
    }
}

class asymmetric_fence {
public:
    // Costs nothing if the kernel has granted it.
    asymmetric_fence() noexcept : free_(membarrier_works()) {}
    // A fence whose light side pays as well.
    static asymmetric_fence full() noexcept { return asymmetric_fence(false); }

    bool is_free() const noexcept { return free_; }

    WEFT_ALWAYS_INLINE void light() const noexcept {
        if (free_) [[likely]]
            std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with heavy(): membarrier
        else
            full_fence();
    }

    static void heavy() noexcept {
        if (membarrier_works()) [[likely]]
            membarrier();
        else
            full_fence();
    }

private:
    explicit asymmetric_fence(bool is_free) noexcept : free_(is_free) {}

    bool free_;
};

}  // namespace weft::detail
