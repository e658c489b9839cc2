// construct_at, destroy_at, address_of: what weft takes from <memory> in headers.
//
// Design: std's own of the same meaning cost a header 8 000 lines to compile. These differ in
// nothing that weft needs: objects, no arrays.
//
//   int slot;
//   weft::detail::construct_at(&slot, 7);
//   weft::detail::destroy_at(&slot);
#pragma once

#include <new>
#include <utility>

namespace weft::detail {

// The address even of an object whose type has an operator& of its own.
template <class T>
constexpr T* address_of(T& object) noexcept {
    return __builtin_addressof(object);
}
template <class T>
const T* address_of(const T&&) = delete;

template <class T, class... Args>
T* construct_at(T* p, Args&&... args) {
    return ::new (const_cast<void*>(static_cast<const volatile void*>(p)))
        T(std::forward<Args>(args)...);
}

template <class T>
void destroy_at(T* p) {
    p->~T();
}

}  // namespace weft::detail
