// stop_callback<F>: runs a function when a stop is requested.
//
// Design: interface and guarantees are those of std::stop_callback; the function may take the
// reason. The function runs at most once: on the thread that requests the stop, or in the
// constructor if a stop is requested already. After the destructor the function neither runs nor
// will run: the destructor waits while another thread runs the function, and does not wait if the
// function itself calls the destructor. Nothing is allocated: the function is stored in the
// callback, and the callback is in the frame of the waiter.
//
// Limits: the function must not throw and must not suspend.
//
//   weft::stop_callback wake(token, [&](weft::stop_reason) { event.set(); });
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "weft/base/detail/invoke.hpp"
#include "weft/stop/detail/stop_node.hpp"

namespace weft {

template <class F>
class stop_callback : detail::stop_node {
    static_assert(std::invocable<F, stop_reason> || std::invocable<F>,
                  "a stop callback takes a stop_reason, or nothing");

public:
    using callback_type = F;

    template <class G>
        requires std::constructible_from<F, G>
    explicit stop_callback(stop_token token, G&& f) noexcept(std::is_nothrow_constructible_v<F, G>)
        : detail::stop_node(call), f_(std::forward<G>(f)) {
        attach(token);
    }
    stop_callback(const stop_callback&) = delete;
    stop_callback& operator=(const stop_callback&) = delete;
    // Waits while another thread runs the function.
    ~stop_callback() { detach(); }

private:
    static void call(detail::stop_node& n, stop_reason reason) noexcept {
        F&& f = std::forward<F>(static_cast<stop_callback&>(n).f_);
        if constexpr (std::invocable<F, stop_reason>)
            detail::invoke(std::forward<F>(f), reason);
        else
            detail::invoke(std::forward<F>(f));
    }

    F f_;
};

template <class F>
stop_callback(stop_token, F) -> stop_callback<F>;

}  // namespace weft
