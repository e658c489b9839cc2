// select_core: one wait at several channels, without the types of their items.
//
// Its one idea: two phases. First all channels are locked, in the order of their addresses, and the
// cases are tried in random order; the first that can happen does, and nothing was waited for. If
// none can, one waiter stands in the lines of all, and then they are unlocked. Whoever comes to one
// of the channels must claim that waiter before anything is moved, and only one can: so exactly one
// case happens, and no other channel has lost or gained an item.
//
//      channel a:   line -> [node 0]--+
//      channel b:   line -> [node 1]--+--> waiter      claimed once
//      channel c:   line -> [node 2]--+
//
// Model: none, its one atomic is a count; which case happens is decided by the waiter's state.
#pragma once

#include <cstddef>
#include <span>

#include "weft/sync/channel_core.hpp"

namespace weft::detail {

class select_core {
public:
    // The cases' nodes, and room for as many channels. Both outlive it.
    select_core(std::span<channel_node* const> nodes, std::span<channel_core*> channels) noexcept;
    select_core(const select_core&) = delete;
    select_core& operator=(const select_core&) = delete;

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    // Whether it is worth it to try.
    bool may() const noexcept;
    // The first phase. Which case happened.
    std::size_t try_now() noexcept;
    // Both. `can_end`: something else may end the wait. Returns whether it waits.
    bool start(waiter& w, bool can_end) noexcept;
    // After start(). Which case happened; none if no case can happen any more.
    std::size_t chosen() const noexcept { return chosen_ != none ? chosen_ : claimed(); }
    // Out of all lines. Also what the withdrawal of its wait does.
    void leave() noexcept;

private:
    void lock() noexcept;
    void unlock() noexcept;
    std::size_t attempt(wait_list& woken) noexcept;
    std::size_t claimed() const noexcept;

    std::span<channel_node* const> nodes_;
    std::span<channel_core*> channels_;  // in order of address, each once
    atomic<unsigned> hopes_;             // written before any node stands in a line
    std::size_t chosen_ = none;
    bool enlisted_ = false;
};

}  // namespace weft::detail
