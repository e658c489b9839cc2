// fetch_ahead: prefetches what the next turns of a run queue will load.
//
// Design: the addresses that a turn loads from are found through what it loads first. A load of a
// cold line stalls everything behind it; a prefetch of a known address does not. So this code reads
// nothing that was not prefetched a turn ago. Where few turns are ready, each entry advances one
// step per turn, and between two steps is a whole turn, with its system calls:
//
//      queue[3]   its handle and its flow                              known from the queue
//      queue[2]   its control block or record; its waiter              known from the flow
//      queue[1]   its stack or frame, its operation, what that is of   known from those
//      queue[0]   runs next
//
// Where many are ready, their pages have left the TLB as well, and a TLB miss stalls even a
// prefetch until the page is found. So then sixteen entries are prefetched together, in a loop so
// short that the processor executes all its iterations at once.
//
// Limits: all of this is hints. Nothing of the queue is read at or behind its count. What its
// entries point to exists as long as they are queued.
//
// Model: none, what it reads is the loop's own.
#pragma once

#include <cstddef>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/runnable.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {

// For tests of a debug build: how often something was prefetched.
struct fetch_counts {
    atomic<std::size_t> steps{0};  // the last of the three steps, for waits from outside
    atomic<std::size_t> bursts{0};
};
inline constinit fetch_counts fetches;

WEFT_ALWAYS_INLINE void count_fetch(atomic<std::size_t>& of) noexcept {
    if constexpr (WEFT_DEBUG != 0) of.fetch_add(1, std::memory_order_relaxed);  // a statistic
}

class fetch_ahead {
public:
    static constexpr std::size_t burst_from = 64;   // more are prefetched in bursts
    static constexpr std::size_t burst_count = 16;  // of this many entries
    static_assert(burst_from >= burst_count);

    // Called before a turn; `turns_left` remain in the iteration.
    template <class Queue>
    WEFT_ALWAYS_INLINE static void before_turn(const Queue& q, std::size_t turns_left) noexcept {
        const std::size_t count = q.count();
        if (count <= burst_from)
            step(q, count);
        else if (turns_left % burst_count == 0)
            burst(q);
    }

private:
    static constexpr std::size_t stack_lines =
        10;  // for a flow that waits for the outside: its waiter and operation

    template <class Queue>
    WEFT_ALWAYS_INLINE static void step(const Queue& q, std::size_t count) noexcept {
        if (count > 3) {
            const ready_turn& e = q[3];
            prefetch(e.handle.address());
            if (e.of != nullptr) prefetch(e.of);
        }
        if (count > 2)
            if (const flow* const f = q[2].of) {
                prefetch(f->hot);
                if (f->waiting != nullptr) f->waiting->fetch_itself();
            }
        if (count > 1)
            if (const flow* const f = q[1].of) {
                const waiter* const w = f->waiting;
                if (w == nullptr || !w->is_from_outside()) return f->fetch();
                count_fetch(fetches.steps);
                f->fetch_stack<stack_lines>();
                w->fetch_operation();
            }
    }

    template <class Queue>
    WEFT_ALWAYS_INLINE static void burst(const Queue& q) noexcept {
        count_fetch(fetches.bursts);
        for (std::size_t i = 0; i != burst_count; ++i) {
            const ready_turn& e = q[i];
            if (e.of == nullptr) {
                prefetch(e.handle.address());
                continue;
            }
            e.of->fetch();
            if (const waiter* const w = e.of->waiting) {
                prefetch(e.handle.address());
                e.of->fetch_below();
                w->fetch();
            }
        }
    }
};

}  // namespace weft::detail
