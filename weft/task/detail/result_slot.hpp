// result_slot<T>: storage for the outcome of a coroutine, a T or an exception.
//
// The promise, not the slot, knows which of the two is stored. T may be void, a reference,
// move-only, without a default constructor, and aligned to anything. A T that is aligned to more
// than two pointers gets extra room to be placed in: a promise follows two pointers in its frame,
// at the same distance whatever its T is (transfer.hpp, I2), and the frame is aligned to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

template <class T>
class result_slot {
    struct nothing {};
    // A reference is kept as a pointer.
    using stored =
        std::conditional_t<std::is_void_v<T>, nothing,
                           std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*,
                                              std::remove_const_t<T>>>;

public:
    static constexpr bool trivial = std::is_trivially_destructible_v<stored>;

    template <class... Args>
    void make_value(Args&&... args) {
        if constexpr (std::is_reference_v<T>)
            ::new (place()) stored(detail::address_of(args)...);
        else
            ::new (place()) stored(std::forward<Args>(args)...);
    }
    void make_error(std::exception_ptr e) noexcept {
        ::new (static_cast<void*>(bytes_)) std::exception_ptr(std::move(e));
    }
    void set_error(std::exception_ptr e) noexcept { error() = std::move(e); }
    void destroy_value() noexcept { value().~stored(); }
    void destroy_error() noexcept { error().~exception_ptr(); }

    // T&, the reference itself, or void.
    std::add_lvalue_reference_t<T> get() noexcept {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T&>(*value());
        else if constexpr (!std::is_void_v<T>)
            return value();
    }
    // T, moved out.
    T take() {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(*value());
        else if constexpr (!std::is_void_v<T>)
            return std::move(value());
    }
    const std::exception_ptr& get_error() noexcept { return error(); }
    [[noreturn]] WEFT_COLD void rethrow() {
        if (error() == nullptr) fail("result of a task that was killed", {}, unknown_caller);
        std::rethrow_exception(error());
    }

private:
    static constexpr std::size_t frame_alignment = 2 * sizeof(void*);
    static constexpr std::size_t slack = alignof(stored) > frame_alignment
                                             ? alignof(stored) - frame_alignment
                                             : 0;
    static constexpr std::size_t value_bytes = sizeof(stored) + slack;
    static constexpr std::size_t bytes = value_bytes > sizeof(std::exception_ptr)
                                             ? value_bytes
                                             : sizeof(std::exception_ptr);

    void* place() noexcept {
        if constexpr (slack == 0) {
            return bytes_;
        } else {
            const auto at = reinterpret_cast<std::uintptr_t>(bytes_);
            return bytes_ + (alignof(stored) - at % alignof(stored)) % alignof(stored);
        }
    }
    stored& value() noexcept { return *std::launder(static_cast<stored*>(place())); }
    std::exception_ptr& error() noexcept {
        return *std::launder(reinterpret_cast<std::exception_ptr*>(bytes_));
    }

    alignas(std::exception_ptr) alignas(alignof(stored) - slack) std::byte bytes_[bytes];
};

}  // namespace weft::detail
