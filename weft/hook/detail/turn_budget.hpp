// turn_budget: a fiber that makes one hooked call after another, and never has to wait, yields its
// turn now and then, as the system takes the processor from a thread. A loop that polls until
// another fiber has done something therefore ends, and a peer that never runs out of bytes starves
// no fiber. (The idea and the word are Tokio's: a cooperative budget.)
//
// Design: each call has a price, and the call that overdraws the thread's budget lets all ready
// flows run first. A wait starts a new budget, so only a fiber that did not wait for hundreds of
// calls overdraws it; a call costs an addition.
//
// weft's own calls are counted as well, some of them under a lock. Descriptors that weft opens have
// O_NONBLOCK. A call on such a descriptor therefore yields no turn, unless the same descriptor was
// tried without effect hundreds of times, which weft does not do.
//
// Limits: code that makes no hooked call (a loop that checks a flag, or the time) keeps its thread,
// and so does code that tries several descriptors with O_NONBLOCK in turn, other than by poll and
// its variants.
//
// Model: none, the budget is its thread's own.
#pragma once

#include "weft/base/detail/tls.hpp"

namespace weft::hook {

struct turn_account {
    int spent;
    int refusals;  // in a row
    int refused;   // the descriptor that they were for
};

}  // namespace weft::hook

WEFT_DECLARE_THREAD_LOCAL(weft::hook::turn_account, weft_tls_turn_account, turn_account_here);

namespace weft::hook {

// A lock takes some 15 ns, a system call 200 and more.
enum class price : int { lock = 1, call = 16 };
inline constexpr int turn_budget = 4096;
inline constexpr int most_refusals_at_once = turn_budget / static_cast<int>(price::call);

// Lets other flows run, if this is allowed here; the last two only if weft does not use the
// descriptor.
void overdrawn();
void overdrawn_by(int fd);
void refused_too_often(int fd);

// Call before the hooked call has begun, or after it has ended.
inline void pay(price p) {
    if ((weft::detail::turn_account_here().spent += static_cast<int>(p)) > turn_budget) [[unlikely]]
        overdrawn();
}
inline void pay_for(int fd) {
    turn_account& mine = weft::detail::turn_account_here();
    if ((mine.spent += static_cast<int>(price::call)) > turn_budget) [[unlikely]]
        overdrawn_by(fd);
}
// For an fd with O_NONBLOCK that had nothing for the call.
inline void refused_at_once(int fd) {
    turn_account& mine = weft::detail::turn_account_here();
    mine.refusals = mine.refused == fd ? mine.refusals + 1 : 1;
    mine.refused = fd;
    if (mine.refusals > most_refusals_at_once) [[unlikely]]
        refused_too_often(fd);
}

// The fiber has waited, or yielded its turn.
inline void begin_turn_budget() noexcept { weft::detail::turn_account_here() = {}; }

}  // namespace weft::hook
