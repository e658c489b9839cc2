// oneshot<T>: a channel for one item: an answer.
//
// Design: the first item closes the channel. Allocates nothing. A second send() returns
// errc::closed. recv() returns errc::closed after the item was received, or if close() came in
// place of an item.
//
// Limits: it is used for one item, and outlives the waits for it. T's move constructor does not
// throw.
//
//   weft::oneshot<reply> answer;
//   ask(q, answer);                                  // elsewhere: answer.send(r)
//   if (auto r = answer.recv()) use(*r);
#pragma once

#include "weft/sync/channel.hpp"

namespace weft {

template <class T>
class oneshot {
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                  "an item is moved while a lock is held, so its move constructor is noexcept");

public:
    using value_type = T;

    oneshot() noexcept : core_(detail::item_type_of<T>, 1, &room_) {}
    oneshot(const oneshot&) = delete;
    oneshot& operator=(const oneshot&) = delete;

    // Never waits. Error: errc::closed; the item is then unchanged.
    result<void> send(T&& item) noexcept {
        if (core_.send_last(&item) == detail::transfer::done) return {};
        return failure(errc::closed);
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

    // After close(), no item can be sent.
    bool close() noexcept { return core_.close(); }
    bool is_closed() const noexcept { return core_.is_closed(); }

    detail::channel_core& core() noexcept { return core_; }  // for select

private:
    detail::item_slot<T> room_;
    detail::channel_core core_;
};

}  // namespace weft
