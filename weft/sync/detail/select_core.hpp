// select_core: one wait at several channels, independent of the types of their items.
//
// Design: two phases. First the select locks all channels, in the order of their addresses, and
// tries the cases in random order. The first case that can happen does happen, without a wait. If
// no case can happen, one waiter is queued in all channels, and then the channels are unlocked. An
// agent that comes to one of the channels must claim that waiter before it moves an item, and only
// one claim succeeds. Exactly one case therefore happens, and no other channel has lost or gained
// an item.
//
//      channel a:   queue -> [node 0]--+
//      channel b:   queue -> [node 1]--+--> waiter      claimed once
//      channel c:   queue -> [node 2]--+
//
// Model: none, its one atomic is a count; which case happens is decided by the waiter's state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/sync/detail/channel_core.hpp"

namespace weft::detail {

// A step of the generator splitmix64, by Sebastiano Vigna (public domain).
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x *= 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class select_core {
public:
    // The cases' nodes, and space for one channel of each node. Both outlive the select_core.
    select_core(std::span<channel_node* const> nodes, std::span<channel_core*> channels) noexcept;
    select_core(const select_core&) = delete;
    select_core& operator=(const select_core&) = delete;

    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    static constexpr std::size_t most = 64;  // so many nodes it can have

    // A hint: whether an attempt is worth the locks.
    bool may() const noexcept;
    // The first phase. Returns the case that happened, or none.
    std::size_t try_now() noexcept;
    // Both phases. `can_end`: something else may end the wait too. Returns whether the select
    // waits.
    bool start(waiter& w, bool can_end) noexcept {
        return start(w, can_end, this,
                     [](waiter& me) noexcept { me.operation<select_core>().leave(); });
    }
    // The same for a part of an operation, which leaves by `cancel`.
    bool start(waiter& w, bool can_end, void* operation, waiter::cancel_fn cancel) noexcept;
    // After start(): the case that happened; none if no case can happen any more.
    std::size_t chosen() const noexcept { return chosen_ != none ? chosen_ : claimed(); }
    // Leaves all queues. Also what the cancel_fn of the select's wait does.
    void leave() noexcept;
    // The random state of the first channel, moved on.
    std::uint64_t next_lot() noexcept;

private:
    void lock() noexcept;
    void unlock() noexcept;
    std::size_t attempt(wait_list& woken) noexcept;
    std::size_t claimed() const noexcept;

    std::span<channel_node* const> nodes_;
    std::span<channel_core*> channels_;  // in order of address, each once
    atomic<unsigned> hopes_;             // written before any node is queued
    std::size_t chosen_ = none;
    bool enlisted_ = false;
};

}  // namespace weft::detail
