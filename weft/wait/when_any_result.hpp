// when_any_result: the result of one of several, and which one it was; for the when_any family.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <variant>

namespace weft {

// The one that ended, counted from 0 in the order of the arguments, and its value.
template <class V>
struct when_any_result {
    std::size_t index;
    V value;
};

namespace detail {

// The type that stores a T in a tuple, a vector or a variant.
template <class T>
using kept_t =
    std::conditional_t<std::is_void_v<T>, std::monostate,
                       std::conditional_t<std::is_reference_v<T>,
                                          std::reference_wrapper<std::remove_reference_t<T>>, T>>;

}  // namespace detail
}  // namespace weft
