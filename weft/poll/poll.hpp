// poll<T>: the result of one check: pending, or a T.
//
// Design: an optional that names its two states. T may be void, a reference, move-only, without
// default constructor, of any size. The T is stored inside the poll (boxed.hpp stores a T
// elsewhere).
//
// Limits: `*p` and `p->` need a poll that is ready.
//
//   weft::poll<reply> look() { return arrived_ ? weft::poll<reply>(take()) : weft::pending; }
//   if (auto p = look(); p.is_ready()) use(*p);
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/detail/lifetime.hpp"

namespace weft {

// The type of `pending`: no value yet.
struct pending_t {
    explicit pending_t() = default;
};
inline constexpr pending_t pending{};

template <class T = void>
class [[nodiscard]] poll {
    // A reference is kept as a pointer.
    using stored = std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*,
                                      std::remove_const_t<T>>;
    using object = std::remove_reference_t<T>;

public:
    using value_type = T;

    poll() noexcept = default;
    poll(pending_t) noexcept {}
    poll(T value) : poll(std::in_place, std::forward<T>(value)) {}
    template <class... V>
    explicit poll(std::in_place_t, V&&... value) {
        emplace(std::forward<V>(value)...);
    }

    bool is_ready() const noexcept { return value_.has_value(); }
    bool is_pending() const noexcept { return !is_ready(); }

    // Precondition of these: is_ready().
    object& operator*() & noexcept { return get(*value_); }
    const object& operator*() const& noexcept { return get(*value_); }
    T&& operator*() && noexcept { return static_cast<T&&>(get(*value_)); }
    object* operator->() noexcept { return detail::address_of(get(*value_)); }
    const object* operator->() const noexcept { return detail::address_of(get(*value_)); }

    template <class... V>
    void emplace(V&&... value) {
        if constexpr (std::is_reference_v<T>)
            value_.emplace(detail::address_of(value)...);
        else
            value_.emplace(std::forward<V>(value)...);
    }
    void reset() noexcept { value_.reset(); }

private:
    template <class S>
    static auto& get(S& s) noexcept {
        if constexpr (std::is_reference_v<T>)
            return *s;
        else
            return s;
    }

    std::optional<stored> value_;
};

template <>
class [[nodiscard]] poll<void> {
public:
    using value_type = void;

    poll() noexcept = default;
    poll(pending_t) noexcept {}
    explicit poll(std::in_place_t) noexcept : ready_(true) {}

    bool is_ready() const noexcept { return ready_; }
    bool is_pending() const noexcept { return !ready_; }
    void operator*() const noexcept {}
    void emplace() noexcept { ready_ = true; }
    void reset() noexcept { ready_ = false; }

private:
    bool ready_ = false;
};

}  // namespace weft
