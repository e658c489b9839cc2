// min_of, max_of: std::min and std::max of two values, without <algorithm>.
//
// Design: <algorithm> costs as much to compile as a layer of weft, and its headers take little
// more than this from it. The arguments are of one type and are passed and returned by value, so
// that no reference to a temporary is left.
//
//   const std::size_t part = weft::detail::min_of<std::size_t>(7, sizeof(int));
#pragma once

namespace weft::detail {

template <class T>
constexpr T min_of(T a, T b) noexcept {
    return b < a ? b : a;
}

template <class T>
constexpr T max_of(T a, T b) noexcept {
    return a < b ? b : a;
}

}  // namespace weft::detail
