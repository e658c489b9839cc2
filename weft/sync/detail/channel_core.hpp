// channel_core: the part of a channel that does not depend on the type of the items.
//
// Design: an item moves from slot to slot. The sender's slot is in the sender's frame, the
// receiver's slot is in the receiver's frame, and the ring between them has `capacity` slots. The
// second agent to arrive moves the item, to or from the first agent's frame if the first agent
// waits. Order is therefore kept, and a woken waiter has nothing left to fetch.
//
//      queued senders          ring                    queued receivers
//      [c] [b] [a]  ------>  | 3 | 2 | 1 |  ------>    (none, while the ring has items)
//
// Invariants:
// C1  a receiver waits only while the ring is empty and no sender waits
// C2  a sender waits only while the ring is full
// C3  no sender and no receiver waits at a closed channel
// C4  a watcher for the end waits only until the channel is closed and the ring is empty
// C5  items are moved under the lock, so their move constructor does not throw and does not use the
//     channel
//
// Model: test/model/channel_core_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/detail/atomic.hpp"
#include "weft/wait/detail/home_lock.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {

// What a channel needs of an item's type.
struct item_type {
    std::size_t bytes;
    std::size_t alignment;
    void (*move)(void* to, void* from) noexcept;  // constructs at `to`; `from` is left to destroy
    void (*destroy)(void* at) noexcept;
};

template <class T>
inline constexpr item_type item_type_of = {
    sizeof(T), alignof(T),
    [](void* to, void* from) noexcept { ::new (to) T(std::move(*static_cast<T*>(from))); },
    [](void* at) noexcept { static_cast<T*>(at)->~T(); }};

class channel_core;

// The result of an attempt.
enum class transfer : std::uint8_t { none, done, closed };

// One request to a channel: a send, a receive, or a case of a select.
struct channel_node : wait_node {
    enum class wish : std::uint8_t { recv, send, end };

    channel_node(channel_core& c, wish w, void* s) noexcept : channel(&c), slot(s), what(w) {}

    channel_core* const channel;
    void* const slot;  // receives the item, or has the item to send
    // In a select: the count of cases that may still happen. The last case to fail ends the wait.
    atomic<unsigned>* hopes = nullptr;
    const wish what;
    transfer outcome = transfer::none;  // written under the lock by the agent that claims
};

class channel_core {
public:
    channel_core(const item_type& type, std::size_t capacity);              // allocates the ring
    channel_core(const item_type& type, std::size_t capacity, void* room);  // caller's ring
    channel_core(const channel_core&) = delete;
    channel_core& operator=(const channel_core&) = delete;
    ~channel_core();

    transfer try_send(void* from) noexcept;
    transfer try_recv(void* to) noexcept;
    // Sends and closes, in one step.
    transfer send_last(void* from) noexcept;
    // Doubles the ring, unless a slot is free: for senders that never wait. Throws bad_alloc.
    void grow();
    // False: the channel was closed already.
    bool close() noexcept;

    bool is_closed() const noexcept { return (hints() & closed_hint) != 0; }
    std::size_t count() const noexcept;
    std::size_t capacity() const noexcept { return capacity_; }

    // The frequent case without a waiter: an item moves into the ring or out of it, by T's own
    // move, without a call. In any other case returns false and changes nothing.
    template <class T>
    WEFT_ALWAYS_INLINE bool send_to_ring(T& item) noexcept {
        if (!has_ring_ || !may(channel_node::wish::send)) return false;
        lock();
        const bool plain = !closed_ && receivers_.empty() && count_ < capacity_;
        if (plain) [[likely]] {
            ::new (at(first_ + count_)) T(std::move(item));
            hint_after(++count_);
        }
        lock_.unlock();
        return plain;
    }
    // `to` is raw storage for the item.
    template <class T>
    WEFT_ALWAYS_INLINE bool recv_from_ring(void* to) noexcept {
        if (!has_ring_ || !may(channel_node::wish::recv)) return false;
        lock();
        const bool plain = count_ != 0 && senders_.empty() && !closed_;
        if (plain) [[likely]] {
            T* const first = static_cast<T*>(static_cast<void*>(room_ + first_ * sizeof(T)));
            ::new (to) T(std::move(*first));
            first->~T();
            if (++first_ == capacity_) first_ = 0;
            hint_after(--count_);
        }
        lock_.unlock();
        return plain;
    }

    // Attempts n's request. If the request must wait, queues n and returns true.
    bool start(channel_node& n, waiter& w) noexcept;
    void cancel(channel_node& n) noexcept;

    // A hint: whether an attempt is worth the lock. The hint reflects what happened before the
    // call.
    bool may(channel_node::wish w) const noexcept {
        return (hints() & (1u << static_cast<unsigned>(w))) != 0;
    }

    // For a select, which locks several channels at once. The caller wakes `woken` after it has
    // unlocked all of them.
    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept;
    transfer attempt(channel_node& n, wait_list& woken) noexcept;
    void enlist(channel_node& n, waiter& w) noexcept;
    void remove(channel_node& n) noexcept {
        if (n.is_linked()) wait_list::remove(n);
    }
    std::uint64_t next_lot() noexcept { return ++lots_; }

private:
    static constexpr unsigned closed_hint = 8;

    // Relaxed: written under the lock. Coherence shows a reader what happened before its read; for
    // all else the reader takes the lock.
    unsigned hints() const noexcept { return hints_.load(std::memory_order_relaxed); }

    // For an open channel without queued senders and receivers; watchers for the end may be queued.
    void hint_after(std::size_t count) noexcept {
        hints_.store((count != 0) | static_cast<unsigned>(count < capacity_) << 1,
                     std::memory_order_relaxed);  // see hints()
    }
    // Moves an item to the first queued receiver, or from the first queued sender, and returns the
    // node, whose owner the caller must wake. Null: none is queued.
    channel_node* hand_over(void* from) noexcept;
    channel_node* take_over(void* to) noexcept;
    transfer send(void* from, wait_list& woken) noexcept;
    transfer recv(void* to, wait_list& woken) noexcept;
    void end(wait_list& woken) noexcept;  // closes the channel
    void put(void* from) noexcept;
    void get(void* to) noexcept;
    void* at(std::size_t index) const noexcept {
        return room_ + (index >= capacity_ ? index - capacity_ : index) * type_.bytes;
    }
    bool is_over() const noexcept { return closed_ && count_ == 0; }
    wait_list& line_of(channel_node::wish w) noexcept;
    static channel_node* claim_first(wait_list& line) noexcept;
    static void give_up(wait_list& line, wait_list& woken) noexcept;
    void tell_watchers(wait_list& woken) noexcept;

    home_lock lock_;
    bool closed_ = false;
    const bool own_room_;
    const bool has_ring_;
    atomic<unsigned> hints_{0};
    const item_type& type_;
    std::size_t capacity_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::byte* room_;
    wait_list receivers_;
    wait_list senders_;
    wait_list watchers_;
    std::uint64_t lots_ = 0;
};

// One wait at one channel: part of every send and receive operation.
class channel_wait {
public:
    channel_wait(channel_core& c, channel_node::wish w, void* slot) noexcept : node_(c, w, slot) {}

    bool try_now() noexcept;
    bool start(waiter& w) noexcept { return node_.channel->start(node_, w); }
    channel_core& channel() const noexcept { return *node_.channel; }
    transfer outcome() const noexcept { return node_.outcome; }
    // The reason that no transfer happened.
    static std::error_code error(wait_status how) noexcept;

private:
    channel_node node_;
};

}  // namespace weft::detail
