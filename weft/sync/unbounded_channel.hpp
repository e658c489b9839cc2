// unbounded_channel<T>: a channel whose senders never wait.
//
// Design: for events whose senders must not be delayed. A bounded channel delays a fast sender; an
// unbounded channel uses memory: the ring doubles when it is full, and never shrinks. Otherwise as
// channel<T>.
//
// Limits: nothing but memory bounds the channel: send() throws bad_alloc. The channel outlives the
// waits for it.
//
//   weft::unbounded_channel<event> events;
//   events.send(e).value();                         // from any thread; the only error is closed
//   for (event& e : events) handle(e);
#pragma once

#include <iterator>

#include "weft/sync/channel.hpp"

namespace weft {

template <class T>
class unbounded_channel {
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                  "an item is moved while a lock is held, so its move constructor is noexcept");

public:
    using value_type = T;

    // Throws bad_alloc.
    unbounded_channel() : core_(detail::item_type_of<T>, first_capacity) {}
    unbounded_channel(const unbounded_channel&) = delete;
    unbounded_channel& operator=(const unbounded_channel&) = delete;

    // Never waits. Throws bad_alloc; the item is then unchanged.
    result<void> send(T&& item) {
        for (;;) {
            const detail::transfer t = core_.try_send(&item);
            if (t == detail::transfer::done) return {};
            if (t == detail::transfer::closed) return failure(errc::closed);
            core_.grow();
        }
    }
    result<void> send(const T& item)
        requires std::is_copy_constructible_v<T>
    {
        return send(T(item));
    }

    result<T> recv(time_limit limit = {},
                   std::source_location caller = std::source_location::current()) {
        return await(async_recv(limit), caller);
    }
    // A loop around it starves the executor.
    result<T> try_recv() { return detail::try_recv<T>(core_); }
    detail::recv_operation<T> async_recv(time_limit limit = {}) noexcept {
        return detail::recv_operation<T>(core_, limit);
    }

    bool close() noexcept { return core_.close(); }
    bool is_closed() const noexcept { return core_.is_closed(); }
    std::size_t size() const noexcept { return core_.count(); }

    detail::recv_iterator<T> begin() { return detail::recv_iterator<T>(core_); }
    std::default_sentinel_t end() const noexcept { return {}; }

    detail::channel_core& core() noexcept { return core_; }  // for select

private:
    static constexpr std::size_t first_capacity = 16;
    detail::channel_core core_;
};

}  // namespace weft
