#include "weft/sync/detail/select_core.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include "weft/wait/detail/off_stack.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

select_core::select_core(std::span<channel_node* const> nodes,
                         std::span<channel_core*> channels) noexcept
    : nodes_(nodes) {
    std::size_t count = 0;
    for (channel_node* n : nodes) channels[count++] = n->channel;
    std::sort(channels.begin(), channels.end(), std::less<>());
    const auto last = std::unique(channels.begin(), channels.end());
    channels_ = channels.first(static_cast<std::size_t>(last - channels.begin()));
}

void select_core::lock() noexcept {
    for (channel_core* c : channels_) c->lock();
}
void select_core::unlock() noexcept {
    for (channel_core* c : channels_) c->unlock();
}

bool select_core::may() const noexcept {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const channel_node* n) { return n->channel->may(n->what); });
}

// Each case is as likely as any other to be tried first, independent of the cases beside it. The
// random state is the channel's and not the thread's, so that a run can be repeated.
std::size_t select_core::attempt(wait_list& woken) noexcept {
    if (nodes_.empty()) return none;
    unsigned char order[most];
    for (std::size_t i = 0; i < nodes_.size(); ++i) order[i] = static_cast<unsigned char>(i);
    std::uint64_t lot = mixed(nodes_.front()->channel->next_lot());
    for (std::size_t left = nodes_.size(); left != 0; --left, lot = mixed(lot + left)) {
        unsigned char& drawn = order[lot % left];
        const std::size_t i = drawn;
        if (nodes_[i]->channel->attempt(*nodes_[i], woken) == transfer::done) return i;
        drawn = order[left - 1];
    }
    return none;
}

std::size_t select_core::try_now() noexcept {
    wait_list woken;
    lock();
    chosen_ = attempt(woken);
    unlock();
    wait_queue::wake_all(woken);
    return chosen_;
}

bool select_core::start(waiter& w, bool can_end, void* operation,
                        waiter::cancel_fn cancel) noexcept {
    // The wait is for a select, which off_stack.hpp has moved, so its channels are asked about
    // here.
    if (w.of != nullptr && w.of->shares_stack()) [[unlikely]]
        for (const channel_core* c : channels_)
            refuse_on_shared_stack(c, "a select of a channel that lies on a shared stack");
    wait_list woken;
    lock();
    chosen_ = attempt(woken);
    bool waits = false;
    if (chosen_ == none) {
        unsigned hopes = can_end;
        for (channel_node* n : nodes_) hopes += n->outcome != transfer::closed;
        // Relaxed: read under the lock of a channel in which a node is queued after this store.
        hopes_.store(hopes, std::memory_order_relaxed);
        waits = hopes != 0;
    }
    if (waits) {
        enlisted_ = true;
        w.enlist("a select", this, operation, cancel);
        for (channel_node* n : nodes_) {
            if (n->outcome == transfer::closed) continue;
            n->hopes = &hopes_;
            n->channel->enlist(*n, w);
        }
    }
    unlock();
    wait_queue::wake_all(woken);
    return waits;
}

std::uint64_t select_core::next_lot() noexcept {
    channel_core& first = *nodes_.front()->channel;
    first.lock();
    const std::uint64_t lot = first.next_lot();
    first.unlock();
    return mixed(lot);
}

std::size_t select_core::claimed() const noexcept {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i]->outcome == transfer::done) return i;
    return none;
}

void select_core::leave() noexcept {
    if (!std::exchange(enlisted_, false)) return;
    lock();
    for (channel_node* n : nodes_) n->channel->remove(*n);
    unlock();
}

}  // namespace weft::detail
