// result<T, E>: a value, or the error that came instead; E is std::error_code unless it is said.
//
// Design: the part of C++23's std::expected<T, E> that a caller uses (P0323), until C++23 may be
// assumed. An expected outcome is a result; a broken rule is not (see assert.hpp). value() on an
// error throws std::system_error, or bad_result<E> where E is something else, and aborts where
// exceptions are off. T and E are stored inline, whatever their type and size.
//
// Limits: T is no reference: a pointer stands for one. `*r` and `r->` need a result that has a
// value.
//
//   weft::result<int> parse(std::string_view);
//   if (auto n = parse("12")) use(*n); else log(n.error());
//
//   weft::result<reply, refusal> call(request);      // return reply{...};
//                                                    // return weft::failure(refusal::busy);
#pragma once

#include <concepts>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/either.hpp"

namespace weft {

// What value() throws of an error that is no std::error_code.
template <class E>
struct bad_result : std::exception {
    explicit bad_result(E e) : error(std::move(e)) {}
    const char* what() const noexcept override { return "value() of a result that holds an error"; }
    E error;
};

namespace detail {

template <class E>
[[noreturn]] void throw_error(const E& e) {
#if WEFT_EXCEPTIONS
    if constexpr (std::is_same_v<E, std::error_code>)
        throw std::system_error(e);
    else
        throw bad_result<E>(e);
#else
    static_cast<void>(e);
    fail("value() of a result that holds an error");
#endif
}

// What an error can be made of: what it is constructed from, or std's way to make a code.
template <class U, class E>
concept error_for = std::constructible_from<E, U> || requires(const U& u) {
    { make_error_code(u) } -> std::same_as<E>;
};

// The type by which a T that is given away is returned.
template <class T>
using kept = std::conditional_t<std::move_constructible<T>, T, T&&>;

}  // namespace detail

// Makes a result that failed: `return weft::failure(std::errc::not_enough_memory);`.
template <class U>
struct failure {
    explicit failure(U e) noexcept(std::is_nothrow_move_constructible_v<U>) : code(std::move(e)) {}
    U code;
};

namespace detail {

template <class E, error_for<E> U>
E error_made_of(failure<U>&& f) {
    if constexpr (std::constructible_from<E, U>)
        return E(std::move(f.code));
    else
        return make_error_code(f.code);
}

}  // namespace detail

template <class T, class E = std::error_code>
class [[nodiscard]] result {
    static_assert(!std::is_reference_v<T>, "a result holds values; use a pointer for a reference");
    static constexpr bool has_code = std::is_same_v<E, std::error_code>;

public:
    using value_type = T;
    using error_type = E;

    result(const T& value) : state_(std::in_place_index<0>, value) {}
    result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}
    template <class... V>
        requires std::constructible_from<T, V...>
    explicit result(std::in_place_t, V&&... value)
        : state_(std::in_place_index<0>, std::forward<V>(value)...) {}
    template <detail::error_for<E> U>
    result(failure<U> f) : state_(std::in_place_index<1>, detail::error_made_of<E>(std::move(f))) {}

    bool has_value() const noexcept { return state_.is_first(); }
    explicit operator bool() const noexcept { return has_value(); }

    // Precondition: has_value().
    T& operator*() & noexcept { return state_.first(); }
    const T& operator*() const& noexcept { return state_.first(); }
    T&& operator*() && noexcept { return std::move(state_.first()); }
    T* operator->() noexcept { return detail::address_of(state_.first()); }
    const T* operator->() const noexcept { return detail::address_of(state_.first()); }

    // Of a result that is gone at the end of the statement it is a value, which a range-for keeps:
    // for (auto& x : read().value()). One that cannot be moved stays where it is.
    T& value() & { return check(), **this; }
    const T& value() const& { return check(), **this; }
    detail::kept<T> value() && { return check(), *std::move(*this); }

    template <class U>
    T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    T value_or(U&& other) && {
        return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
    }

    // The error, or a zero code when the result has a value.
    std::error_code error() const& noexcept
        requires has_code
    {
        return has_value() ? std::error_code{} : state_.second();
    }
    // Precondition if E is no code: !has_value().
    const E& error() const& noexcept
        requires(!has_code)
    {
        return state_.second();
    }
    E&& error() && noexcept
        requires(!has_code)
    {
        return std::move(state_.second());
    }

private:
    void check() const {
        if (!has_value()) detail::throw_error(state_.second());
    }

    detail::either<T, E> state_;
};

template <class E>
class [[nodiscard]] result<void, E> {
    static constexpr bool has_code = std::is_same_v<E, std::error_code>;

public:
    using value_type = void;
    using error_type = E;

    result() noexcept : state_(std::in_place_index<0>) {}
    template <detail::error_for<E> U>
    result(failure<U> f) : state_(std::in_place_index<1>, detail::error_made_of<E>(std::move(f))) {}

    bool has_value() const noexcept { return state_.is_first(); }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (!has_value()) detail::throw_error(state_.second());
    }
    // As above.
    std::error_code error() const noexcept
        requires has_code
    {
        return has_value() ? std::error_code{} : state_.second();
    }
    const E& error() const noexcept
        requires(!has_code)
    {
        return state_.second();
    }

private:
    struct nothing {};
    detail::either<nothing, E> state_;
};

}  // namespace weft
