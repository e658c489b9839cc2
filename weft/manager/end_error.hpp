// end_error<E>: how the end of a task, or of a wait, is reported in an error type of the user's
// own.
//
// Design: where a task returns result<T, E>, its joiner gets a result<T, E>, not a result in a
// result. That the task was killed, was late, or no longer exists is an E as well, made here from
// the error code.
//
// Limits: an E without a specialisation is left alone: the joiner then gets result<result<T, E>>.
//
//   enum class rpc_error { refused, gone, late };
//   template <>
//   struct weft::end_error<rpc_error> {
//       static rpc_error of(std::error_code why) {
//           return why == std::errc::timed_out ? rpc_error::late : rpc_error::gone;
//       }
//   };
//   weft::result<reply, rpc_error> r = manager.join<weft::result<reply, rpc_error>>(id);
#pragma once

#include <concepts>
#include <system_error>

#include "weft/base/result.hpp"

namespace weft {

template <class E>
struct end_error;

template <>
struct end_error<std::error_code> {
    static std::error_code of(std::error_code why) noexcept { return why; }
};

namespace detail {

template <class E>
concept has_end_error = requires(std::error_code c) {
    { end_error<E>::of(c) } -> std::convertible_to<E>;
};

// The type that a T is returned as where there may be none.
template <class T>
struct outcome_of {
    using type = result<T>;
    static type failed(std::error_code why) { return failure(why); }
};
template <class T, has_end_error E>
struct outcome_of<result<T, E>> {
    using type = result<T, E>;
    static type failed(std::error_code why) { return failure(E(end_error<E>::of(why))); }
};
template <class T>
using outcome_t = typename outcome_of<T>::type;

}  // namespace detail
}  // namespace weft
