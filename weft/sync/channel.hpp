// channel<T>: a queue of bounded length between senders and receivers, as in Go.
//
// Design: a full channel makes its senders wait, so a fast sender cannot outrun a slow receiver.
// With a capacity of 0, an item moves from a sender directly to a receiver, and send() returns when
// the item has been taken.
//
// - Items leave in the order in which they came. Each item goes to one receiver. Items are moved,
//   never copied. T's move does not throw and does not use the channel.
// - close(): no further item enters. Items in the channel can still be received; after the last of
//   them, recv() returns errc::closed.
// - A transfer happens completely or not at all. A receiver that gives up (limit, stop) has
//   received no item. The item of a sender that gives up stays in the send operation until the
//   operation is destroyed.
//
// Limits: the channel outlives the waits for it. A sender does not learn whether an item in the
// channel is ever received.
//
//   weft::channel<order> orders(64);
//   orders.send(std::move(o)).value();               // a producer
//   orders.close();
//   for (order& o : orders) book(o);                 // a consumer, until the end
//   while (auto o = co_await orders.async_recv()) book(*o);     // the same in a coroutine
#pragma once

#include <iterator>
#include <optional>

#include "weft/base/errc.hpp"
#include "weft/base/result.hpp"
#include "weft/sync/detail/channel_core.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace detail {

// Storage in which a transfer constructs an item.
template <class T>
union item_slot {
    item_slot() noexcept {}
    ~item_slot() {}
    T item;
};

template <class T>
class [[nodiscard]] recv_operation {
public:
    static constexpr bool reports_stop = true;

    explicit recv_operation(channel_core& c, time_limit limit = {}) noexcept
        : wait_(c, channel_node::wish::recv, &slot_), limit_(limit) {}
    // Only before the operation is awaited.
    recv_operation(recv_operation&& other) noexcept
        : recv_operation(other.wait_.channel(), other.limit_) {}
    recv_operation& operator=(const recv_operation&) = delete;
    ~recv_operation() {
        if (wait_.outcome() == transfer::done) slot_.item.~T();
    }

    bool ready() noexcept { return wait_.try_now(); }
    bool start(waiter& w) noexcept { return wait_.start(w); }
    time_point deadline() const noexcept { return deadline_of(limit_); }
    result<T> take(const waiter*, wait_status how) {
        if (wait_.outcome() == transfer::done) return std::move(slot_.item);
        return failure(channel_wait::error(how));
    }

private:
    item_slot<T> slot_;
    channel_wait wait_;
    time_limit limit_;
};

template <class T>
class [[nodiscard]] send_operation {
public:
    static constexpr bool reports_stop = true;

    send_operation(channel_core& c, T&& item, time_limit limit) noexcept
        : item_(std::move(item)), wait_(c, channel_node::wish::send, &item_), limit_(limit) {}
    // Only before the operation is awaited.
    send_operation(send_operation&& other) noexcept
        : send_operation(other.wait_.channel(), std::move(other.item_), other.limit_) {}
    send_operation& operator=(const send_operation&) = delete;

    bool ready() noexcept { return wait_.try_now(); }
    bool start(waiter& w) noexcept { return wait_.start(w); }
    time_point deadline() const noexcept { return deadline_of(limit_); }
    result<void> take(const waiter*, wait_status how) noexcept {
        if (wait_.outcome() == transfer::done) return {};
        return failure(channel_wait::error(how));
    }

private:
    T item_;
    channel_wait wait_;
    time_limit limit_;
};

// The error that a try_ function returns.
inline std::error_code refusal(transfer t) noexcept {
    if (t == transfer::closed) return errc::closed;
    return std::make_error_code(std::errc::resource_unavailable_try_again);
}

template <class T>
result<T> try_recv(channel_core& c) {
    item_slot<T> slot;
    const transfer t = c.try_recv(&slot);
    if (t != transfer::done) return failure(refusal(t));
    result<T> item(std::move(slot.item));
    slot.item.~T();
    return item;
}

// A receive for a range-for loop. A stop throws, because a loop cannot report a stop: a loop that
// just ended would look like the end of the channel.
template <class T>
class [[nodiscard]] next_operation : public recv_operation<T> {
public:
    static constexpr bool reports_stop = false;
    using recv_operation<T>::recv_operation;

    result<T> take(const waiter* w, wait_status how) {
        if (how == wait_status::stopped) throw_stopped(w->reason());
        return recv_operation<T>::take(w, how);
    }
};

// Receives until the channel is closed and empty.
template <class T>
class recv_iterator {
public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    recv_iterator() noexcept = default;
    explicit recv_iterator(channel_core& c) : channel_(&c) { ++*this; }

    T& operator*() const noexcept { return *item_; }
    recv_iterator& operator++() {
        item_.reset();
        item_slot<T> slot;
        if (channel_->recv_from_ring<T>(&slot)) {
            item_.emplace(std::move(slot.item));
            slot.item.~T();
        } else {
            wait_for_next();
        }
        return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !item_; }

private:
    WEFT_NOINLINE void wait_for_next() {
        next_operation<T> op(*channel_);
        if (auto next = await(op)) item_.emplace(*std::move(next));
    }

    channel_core* channel_ = nullptr;
    mutable std::optional<T> item_;
};

}  // namespace detail

template <class T>
class channel {
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                  "an item is moved while a lock is held, so its move constructor is noexcept");

public:
    using value_type = T;

    // Throws bad_alloc, also if no memory could ever hold `capacity` items.
    explicit channel(std::size_t capacity = 0) : core_(detail::item_type_of<T>, capacity) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;

    // Errors: errc::closed; operation_canceled when stopped; timed_out.
    result<void> send(T item) {
        if (core_.send_to_ring(item)) return {};
        if (core_.may(detail::channel_node::wish::send)) {
            const detail::transfer t = core_.try_send(&item);
            if (t == detail::transfer::done) return {};
            if (t == detail::transfer::closed) return failure(errc::closed);
        }
        return send_waiting(std::move(item));
    }
    result<void> send(T item, time_limit limit,
                      std::source_location caller = std::source_location::current()) {
        return await(async_send(std::move(item), limit), caller);
    }
    // On failure the item is unchanged. Errors: closed, resource_unavailable_try_again. A loop
    // around it starves the executor.
    result<void> try_send(T&& item) noexcept {
        const detail::transfer t = core_.try_send(&item);
        if (t == detail::transfer::done) return {};
        return failure(detail::refusal(t));
    }
    result<void> try_send(const T& item)
        requires std::is_copy_constructible_v<T>
    {
        return try_send(T(item));
    }

    // Errors: errc::closed, when no item is left; operation_canceled; timed_out.
    result<T> recv() {
        detail::item_slot<T> slot;
        if (!core_.recv_from_ring<T>(&slot)) {
            if (!core_.may(detail::channel_node::wish::recv)) return recv_waiting();
            const detail::transfer t = core_.try_recv(&slot);
            if (t == detail::transfer::none) return recv_waiting();
            if (t == detail::transfer::closed) return failure(errc::closed);
        }
        result<T> item(std::move(slot.item));
        slot.item.~T();
        return item;
    }
    result<T> recv(time_limit limit,
                   std::source_location caller = std::source_location::current()) {
        return await(async_recv(limit), caller);
    }
    // A loop around it starves the executor.
    result<T> try_recv() { return detail::try_recv<T>(core_); }

    detail::send_operation<T> async_send(T item, time_limit limit = {}) noexcept {
        return detail::send_operation<T>(core_, std::move(item), limit);
    }
    detail::recv_operation<T> async_recv(time_limit limit = {}) noexcept {
        return detail::recv_operation<T>(core_, limit);
    }

    // Wakes all waiters. False: the channel was closed already.
    bool close() noexcept { return core_.close(); }
    bool is_closed() const noexcept { return core_.is_closed(); }
    std::size_t size() const noexcept { return core_.count(); }
    std::size_t capacity() const noexcept { return core_.capacity(); }

    // Receive until the channel is closed and empty. Throw stopped.
    detail::recv_iterator<T> begin() { return detail::recv_iterator<T>(core_); }
    std::default_sentinel_t end() const noexcept { return {}; }

    detail::channel_core& core() noexcept { return core_; }  // for select

private:
    WEFT_NOINLINE result<void> send_waiting(T item) {
        auto op = async_send(std::move(item));
        return detail::block_unready(op, std::source_location::current());
    }
    WEFT_NOINLINE result<T> recv_waiting() {
        auto op = async_recv();
        return detail::block_unready(op, std::source_location::current());
    }

    detail::channel_core core_;
};

}  // namespace weft
