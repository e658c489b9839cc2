// result<T>: a value, or the std::error_code that came instead.
//
// The part of C++23's std::expected<T, std::error_code> that a caller uses (P0323), until C++23 may
// be assumed. An expected outcome is a result; a broken rule is not (see assert.hpp). value() on an
// error throws std::system_error, or aborts where exceptions are off.
//
//   weft::result<int> parse(std::string_view);
//   if (auto n = parse("12")) use(*n); else log(n.error());
#pragma once

#include <cstdlib>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/assert.hpp"

namespace weft {

namespace detail {
[[noreturn]] inline void throw_error(std::error_code e) {
#if WEFT_EXCEPTIONS
    throw std::system_error(e);
#else
    static_cast<void>(e);
    fail("value() of a result that holds an error");
#endif
}
}  // namespace detail

// Makes a result that failed: `return weft::failure(std::errc::not_enough_memory);`.
struct failure {
    explicit failure(std::error_code e) noexcept : code(e) {}
    explicit failure(std::errc e) noexcept : code(std::make_error_code(e)) {}
    std::error_code code;
};

template <class T>
class [[nodiscard]] result {
    static_assert(!std::is_reference_v<T>, "a result holds values; use a pointer for a reference");

public:
    using value_type = T;
    using error_type = std::error_code;

    result(const T& value) : state_(std::in_place_index<0>, value) {}
    result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}
    result(failure f) noexcept : state_(std::in_place_index<1>, f.code) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    // Precondition: has_value().
    T& operator*() & noexcept { return *std::get_if<0>(&state_); }
    const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
    T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() noexcept { return std::get_if<0>(&state_); }
    const T* operator->() const noexcept { return std::get_if<0>(&state_); }

    T& value() & { return check(), **this; }
    const T& value() const& { return check(), **this; }
    T&& value() && { return check(), *std::move(*this); }

    template <class U>
    T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    T value_or(U&& other) && {
        return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
    }

    // The error, or a zero code when there is a value.
    std::error_code error() const noexcept {
        const auto* e = std::get_if<1>(&state_);
        return e != nullptr ? *e : std::error_code{};
    }

private:
    void check() const {
        if (!has_value()) detail::throw_error(error());
    }

    std::variant<T, std::error_code> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
    using value_type = void;
    using error_type = std::error_code;

    result() noexcept = default;
    result(failure f) noexcept : error_(f.code) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (error_) detail::throw_error(*error_);
    }
    std::error_code error() const noexcept { return error_.value_or(std::error_code{}); }

private:
    std::optional<std::error_code> error_;
};

}  // namespace weft
