#include "weft/poll/detail/poll_state.hpp"

#include <atomic>

#include "weft/base/assert.hpp"

namespace weft::detail {

void poll_state::publish_to_waiter(std::uintptr_t seen) noexcept {
    for (;;) {
        WEFT_ASSERT_AT(seen != ready && seen != busy,
                       "a poll_future that is ready is set once more", unknown_caller);
        // A waiter that was cancelled meanwhile leaves the word pending.
        const std::uintptr_t next = seen == pending ? ready : busy;
        const std::uintptr_t before = seen;
        // Release: pairs with is_ready() and enlist(). Acquire: pairs with enlist(), which
        // published w.
        if (word_.compare_exchange_strong(seen, next, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
            if (before == pending) return;
            break;
        }
    }
    waiter& w = *reinterpret_cast<waiter*>(seen);
    const bool ours = w.claim();
    // Release: pairs with is_ready(), and with cancel(), which may end w after it.
    word_.store(ready, std::memory_order_release);
    if (ours) w.wake();  // W1
}

void poll_state::refuse_second(waiter& w) noexcept {
    fail("a second one awaits a poll_future that is awaited",
         w.of != nullptr ? w.of->info() : agent_info{}, unknown_caller);
}

}  // namespace weft::detail
