// end_error<E>: how the end of a task, or of a wait, is told in an error type of the user's own.
//
// Its one idea: where a task returns result<T, E>, who joins it gets a result<T, E>, and not a
// result in a result: that it was killed, was late, or is not there any more is an E as well, made
// here from the code that says it.
//
//   enum class rpc_error { refused, gone, late };
//   template <>
//   struct weft::end_error<rpc_error> {
//       static rpc_error of(std::error_code why) {
//           return why == std::errc::timed_out ? rpc_error::late : rpc_error::gone;
//       }
//   };
//   weft::result<reply, rpc_error> r = manager.join<weft::result<reply, rpc_error>>(id);
//
// An E without one is left alone: then it is result<result<T, E>>.
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

// What a T is given out as where there may be none.
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
