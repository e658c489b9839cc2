#include "weft/base/give_back.hpp"

namespace weft::detail {
namespace {

constinit atomic<memory_keeper*> keepers{nullptr};

}  // namespace

void memory_keeper::enter() noexcept {
    // Relaxed: only one of the callers goes on.
    if (entered_.load(std::memory_order_relaxed) ||
        entered_.exchange(true, std::memory_order_relaxed))
        return;
    next_ = keepers.load(std::memory_order_relaxed);  // a guess, tested below
    // Release: pairs with give_back().
    while (!keepers.compare_exchange_weak(next_, this, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
}

time_point give_back(time_point now) noexcept {
    time_point next = never;
    // Acquire: pairs with enter(), of this one and, through it, of those behind it.
    for (const memory_keeper* k = keepers.load(std::memory_order_acquire); k != nullptr;
         k = k->next_)
        next = std::min(next, k->give_back_(now));
    return next;
}

}  // namespace weft::detail
