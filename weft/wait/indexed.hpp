// indexed: what one of several ended with, and which of them; for when_any and its kin.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <variant>

namespace weft {

// Who ended, counted from 0 in the order of the arguments, and with what.
template <class V>
struct indexed {
    std::size_t index;
    V value;
};

namespace detail {

// What stands for a T in a tuple, a vector or a variant.
template <class T>
using kept_t =
    std::conditional_t<std::is_void_v<T>, std::monostate,
                       std::conditional_t<std::is_reference_v<T>,
                                          std::reference_wrapper<std::remove_reference_t<T>>, T>>;

}  // namespace detail
}  // namespace weft
