// poll_slot<T>: the storage in a poll_future for its value.
//
// Unlike std::optional, whose emplace() first destroys an old value, fill() requires an empty slot,
// and GCC 12 sees that no old value is there. T may be void or a reference.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/detail/lifetime.hpp"

namespace weft::detail {

template <class T>
class poll_slot {
    // A reference is kept as a pointer.
    using stored = std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*,
                                      std::remove_const_t<T>>;

public:
    poll_slot() noexcept {}
    poll_slot(const poll_slot&) = delete;
    ~poll_slot() { clear(); }

    bool is_full() const noexcept { return full_; }
    // Precondition: the slot is empty.
    template <class... V>
    void fill(V&&... v) {
        if constexpr (std::is_reference_v<T>)
            detail::construct_at(&value_, detail::address_of(v)...);
        else
            detail::construct_at(&value_, std::forward<V>(v)...);
        full_ = true;
    }
    void clear() noexcept {
        if (std::exchange(full_, false)) value_.~stored();
    }

    // Precondition of get() and take(): the slot is full.
    T& get() noexcept {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T&>(*value_);
        else
            return value_;
    }
    T take() {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(*value_);
        else
            return std::move(value_);
    }

private:
    union {
        stored value_;
    };
    bool full_ = false;
};

template <>
class poll_slot<void> {
public:
    bool is_full() const noexcept { return full_; }
    void fill() noexcept { full_ = true; }
    void clear() noexcept { full_ = false; }
    void get() const noexcept {}
    void take() const noexcept {}

private:
    bool full_ = false;
};

}  // namespace weft::detail
