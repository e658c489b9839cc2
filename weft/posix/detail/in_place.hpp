// in_place: an object of C++ in the room of an object of C.
//
// Design: an object of C may be nothing but zeros (a static initialiser), and an object of C++ has
// to be made. The first caller therefore makes it, and one word has the state of that.
//
//      state_   0 ------> making ------> made ------> destroyed      and by init(): made, from any
//      room_    zeros                     T
//
//   weft::mutex* m = detail::in_place<weft::mutex>(*c);      // null: it was destroyed
//
// Model: test/model/in_place_test.cpp
#pragma once

#include <new>
#include <utility>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

struct in_place_state {
    static constexpr unsigned zeros = 0;
    static constexpr unsigned making = 1;
    static constexpr unsigned made = 2;
    static constexpr unsigned destroyed = 3;
};

// The room as it is, whatever is in it.
template <class T, class C>
T* room_of(C& c) noexcept {
    static_assert(sizeof(T) <= sizeof(c.room_) && alignof(T) <= alignof(decltype(c.room_)));
    return std::launder(reinterpret_cast<T*>(c.room_));
}

// Called by init(): the state and the room may hold anything.
template <class T, class C, class... Args>
void make_in_place(C& c, Args&&... args) noexcept {
    ::new (static_cast<void*>(c.room_)) T(std::forward<Args>(args)...);
    // Release: pairs with in_place.
    atomic_ref(c.state_).store(in_place_state::made, std::memory_order_release);
}

template <class T, class C>
WEFT_NOINLINE T* in_place_slowly(C& c) noexcept {
    static_assert(sizeof(T) <= sizeof(c.room_) && alignof(T) <= alignof(decltype(c.room_)));
    const atomic_ref state(c.state_);
    unsigned seen = in_place_state::zeros;
    // Acquire: pairs with the release of the caller that makes it.
    if (state.compare_exchange_strong(seen, in_place_state::making, std::memory_order_acquire)) {
        make_in_place<T>(c);
        return room_of<T>(c);
    }
    for (spin_wait w; seen == in_place_state::making;) {
        w.once();
        seen = state.load(std::memory_order_acquire);  // as above
    }
    return seen == in_place_state::made ? room_of<T>(c) : nullptr;
}

template <class T, class C>
T* in_place(C& c) noexcept {
    // Acquire: pairs with make_in_place.
    const unsigned seen = atomic_ref(c.state_).load(std::memory_order_acquire);
    return seen == in_place_state::made ? room_of<T>(c) : in_place_slowly<T>(c);
}

// Precondition: no caller uses the object any more.
template <class T, class C>
void destroy_in_place(C& c) noexcept {
    room_of<T>(c)->~T();
    // Relaxed: a caller that uses it after this breaks a rule, and need not see what was before.
    atomic_ref(c.state_).store(in_place_state::destroyed, std::memory_order_relaxed);
}

}  // namespace weft::detail
