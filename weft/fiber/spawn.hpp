// spawn: starts a fiber whose function returns a T; join_handle<T> delivers the result.
//
// Design: the handle is a fiber object: it joins or detaches, and its destructor requests a stop
// and joins.
//
// Limits: a handle that is dropped stops its fiber: detach() it first if it is to run on. Within a
// block whose children are joined in any case, there is nursery::spawn.
//
//   weft::join_handle<int> h = weft::spawn([] { return compute(); });
//   int n = h.get();                              // or co_await h.async_get()
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/detail/invoke.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/fiber/fiber.hpp"

namespace weft {
namespace detail {

// The result of a function; a reference is stored as a pointer.
template <class T>
struct returned {
    static_assert(runs_in_a_fiber<T>());
    std::optional<std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>> value;

    template <class F>
    void keep(F&& f) {
        if constexpr (std::is_reference_v<T>) {
            T&& r = detail::invoke(std::forward<F>(f));
            value.emplace(detail::address_of(r));
        } else {
            value.emplace(detail::invoke(std::forward<F>(f)));
        }
    }
    T take() {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(**value);
        else
            return std::move(*value);
    }
};
template <>
struct returned<void> {
    template <class F>
    void keep(F&& f) {
        detail::invoke(std::forward<F>(f));
    }
    void take() noexcept {}
};

// The storage for the result, which the fiber and its handle share; void needs none.
struct returned_nothing {
    returned<void>* operator->() const noexcept {
        static constinit returned<void> nothing;
        return &nothing;
    }
};
template <class T>
using returned_place =
    std::conditional_t<std::is_void_v<T>, returned_nothing, std::shared_ptr<returned<T>>>;
template <class T>
returned_place<T> place_to_return() {
    if constexpr (std::is_void_v<T>)
        return {};
    else
        return std::make_shared<returned<T>>();
}

}  // namespace detail

template <class T>
class [[nodiscard]] join_handle : public fiber {
public:
    join_handle() noexcept = default;

    // Waits for the fiber's end and returns the function's result. Throws the exception that left
    // the function, and weft::stopped with the reason if the fiber was stopped.
    T get(std::source_location caller = std::source_location::current()) {
        return finished(this->join(caller));
    }

    // The same for co_await. The handle must not be moved meanwhile.
    class get_operation;
    get_operation async_get(std::source_location caller = std::source_location::current()) {
        return get_operation(*this, caller);
    }

private:
    template <class F>
    friend auto spawn(F&& f, const fiber_options& options, std::source_location caller);

    join_handle(fiber f, detail::returned_place<T> value) noexcept
        : fiber(std::move(f)), value_(std::move(value)) {}

    T finished(join_result how) {
        if (how.is_stopped()) detail::throw_stopped(how.reason());
        return value_->take();
    }

    [[no_unique_address]] detail::returned_place<T> value_;
};

template <class T>
class [[nodiscard]] join_handle<T>::get_operation : public fiber::join_operation {
public:
    T take(const waiter* w, wait_status how) {
        return handle_->finished(join_operation::take(w, how));
    }

private:
    friend join_handle;
    get_operation(join_handle& h, std::source_location caller)
        : join_operation(h, caller), handle_(&h) {}
    join_handle* handle_;
};

template <class F>
auto spawn(F&& f, const fiber_options& options = {},
           std::source_location caller = std::source_location::current()) {
    constexpr bool can_be_called = callable_without_arguments<std::decay_t<F>>;
    static_assert(can_be_called,
                  "spawn takes a function without parameters; a task is spawned into a nursery, or "
                  "awaited in the function");
    if constexpr (can_be_called) {
        using T = std::invoke_result_t<std::decay_t<F>>;
        auto value = detail::place_to_return<T>();
        fiber made([value, f = std::decay_t<F>(
                               std::forward<F>(f))]() mutable { value->keep(std::move(f)); },
                   options, caller);
        return join_handle<T>(std::move(made), std::move(value));
    }
}

}  // namespace weft
