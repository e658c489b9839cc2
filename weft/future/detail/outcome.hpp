// outcome: the typed part of a future's storage: T, in the place of a failure.
//
//      future_core | failure, or stored_t<T> aligned as it needs
#pragma once

#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/base/detail/min_max.hpp"
#include "weft/future/detail/future_core.hpp"
#include "weft/wait/stopped.hpp"

namespace weft::detail {

// The stored form of a T; a reference is kept as a pointer.
template <class T>
using stored_t = std::conditional_t<
    std::is_void_v<T>, std::monostate,
    std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, std::remove_cv_t<T>>>;

constexpr std::size_t aligned(std::size_t bytes, std::size_t alignment) noexcept {
    return (bytes + alignment - 1) / alignment * alignment;
}

template <class T>
inline constexpr std::size_t outcome_offset = aligned(sizeof(future_core), alignof(stored_t<T>));
template <class T>
inline constexpr std::size_t outcome_end =
    max_of(outcome_offset<T> + sizeof(stored_t<T>), sizeof(future_core) + sizeof(failure_room));
template <class T>
inline constexpr std::size_t outcome_alignment = max_of(alignof(stored_t<T>), alignof(future_core));

template <class X>
X& in_room(future_core& c, std::size_t offset) noexcept {
    return *std::launder(reinterpret_cast<X*>(reinterpret_cast<std::byte*>(&c) + offset));
}

template <class T>
stored_t<T>& value_of(future_core& c) noexcept {
    return in_room<stored_t<T>>(c, outcome_offset<T>);
}

// Stores a value. Throws what T's constructor throws; the core is then unchanged.
template <class T, class... V>
void put_value(future_core& c, V&&... v) {
    void* const place = &value_of<T>(c);
    if constexpr (std::is_reference_v<T>)
        ::new (place) stored_t<T>(detail::address_of(v)...);
    else
        ::new (place) stored_t<T>(std::forward<V>(v)...);
    c.kind = outcome_kind::value;
}
// Stores what f returns, without a move.
template <class T, class F>
void put_result(future_core& c, F&& f) {
    if constexpr (std::is_void_v<T>) {
        f();
        put_value<T>(c);
    } else if constexpr (std::is_reference_v<T>) {
        put_value<T>(c, f());
    } else {
        ::new (static_cast<void*>(&value_of<T>(c))) stored_t<T>(f());
        c.kind = outcome_kind::value;
    }
}

// The value as a function's argument: T&&, or the reference itself.
template <class T>
decltype(auto) moved(stored_t<T>& v) noexcept {
    if constexpr (std::is_reference_v<T>)
        return static_cast<T>(*v);
    else
        return std::move(v);
}

// The value as an lvalue.
template <class T>
std::remove_reference_t<T>& seen(stored_t<T>& v) noexcept {
    if constexpr (std::is_reference_v<T>)
        return *v;
    else
        return v;
}

// Calls f in a future's turn; an exception becomes the outcome of c, whose storage is empty.
template <class F>
void put_what_is_thrown(future_core& c, F&& f) noexcept {
    std::exception_ptr thrown;
    keep_thrown(thrown, [&] {
#if WEFT_EXCEPTIONS
        try {
            f();
        } catch (const stopped& s) {
            c.put_stopped(s.reason);
        }
#else
        f();
#endif
    });
    if (thrown != nullptr) c.put_exception(std::move(thrown));
}

template <class T>
void move_outcome(future_core& from, future_core& to) noexcept {
    if (!from.has_value()) return to.take_failure_of(from);
    put_what_is_thrown(to, [&] { put_value<T>(to, moved<T>(value_of<T>(from))); });
}

template <class T>
void destroy_outcome(future_core& c) noexcept {
    if (c.has_value())
        detail::destroy_at(&value_of<T>(c));
    else
        c.destroy_failure();
}

// The block of a future of T, with storage for another object before the outcome exists.
template <class T>
constexpr std::size_t block_alignment(std::size_t other = 1) noexcept {
    return max_of(outcome_alignment<T>, other);
}
template <class T>
constexpr std::size_t block_bytes(std::size_t end = 0) noexcept {
    return max_of(outcome_end<T>, end);
}

// The block of a promise, which stores nothing else.
template <class T>
struct promise_block {
    static future_core* make(executor& on, unsigned references) {
        void* const p = block_cache::acquire(block_bytes<T>(), block_alignment<T>());
        auto* const c = ::new (p) future_core(on, nullptr, dispose, references);
        c->stops.refuse();
        return c;
    }
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        destroy_outcome<T>(c);
        release_block(c, block_bytes<T>(), block_alignment<T>());
    }
};

}  // namespace weft::detail
