#include "weft/base/detail/release_unused.hpp"

#include <algorithm>

namespace weft::detail {
namespace {

constinit keeper_chain keepers;

}  // namespace

void keeper_chain::enter(memory_keeper& k) noexcept {
    // Relaxed: only one of the callers goes on.
    if (k.entered_.load(std::memory_order_relaxed) ||
        k.entered_.exchange(true, std::memory_order_relaxed))
        return;
    k.next_ = first_.load(std::memory_order_relaxed);  // a guess, tested below
    // Release: pairs with release_unused().
    while (!first_.compare_exchange_weak(k.next_, &k, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
}

time_point keeper_chain::release_unused(time_point now) const noexcept {
    time_point next = never;
    // Acquire: pairs with enter(), of this one and, through it, of those behind it.
    for (const memory_keeper* k = first_.load(std::memory_order_acquire); k != nullptr;
         k = k->next_)
        next = std::min(next, k->release_unused_(now));
    return next;
}

void memory_keeper::enter() noexcept { keepers.enter(*this); }

time_point release_unused(time_point now) noexcept { return keepers.release_unused(now); }

}  // namespace weft::detail
